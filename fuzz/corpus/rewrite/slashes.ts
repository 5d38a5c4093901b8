a = b / c; d = e
/f(/g; h = ) /i/; `${/}/}`; x++ /y/ z; if (a) /re(/.test(b); é𝄞