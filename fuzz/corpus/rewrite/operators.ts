let x = 1, o: any = { a: 1, b: [1] };
x += 2; x -= 3; x *= 4; x /= 5; x %= 6; x **= 7; x &&= 8; x ||= 9; x ??= 10; x |= 1; x <<= 2; x >>>= 3;
o.a += x; o["b"][0] ||= x; o?.a?.(x)?.b; o.b[x]++; --o.a; delete o.a; void 0; typeof x;
const y = x ? o : x ?? (x && o) || !x; const z = `a${x}b${`c${o}`}`; const t = String.raw`q${x}`;
x > 1 ? x < 2 ? x : o : -x; +x; ~x; !(!x); x in o; o instanceof Object; (x, o); x = (o as any)!.a satisfies number;
label: for (let i = 0, j = x; i < j; i++) { if (i == 2) continue label; else break label; }
while (x != null) { do { x--; } while (x > 0); } for (const k in o) ; for (const [a, b] of Object.entries(o)) a === b;
switch (x) { case 1 + 1: break; default: throw x; } try { x; } catch { o; } finally { x; }
