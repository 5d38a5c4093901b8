//! F: score, filter and top in one pass; nothing is written but candidates.

use crate::data::Table;
use crate::floor::Width;
use crate::floor::top::Best;

pub fn fused(table: &Table, width: Width, best: &mut Best) -> Vec<u32> {
    match width {
        // SAFETY: the features were detected.
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 => unsafe { wide::avx512(table, best) },
        // SAFETY: the features were detected.
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => unsafe { wide::avx2(table, best) },
        _ => {
            best.start(table.take, table.x);
            offer_rest(table, 0, best);
            best.finish()
        }
    }
}

#[inline(always)]
fn offer_rest(table: &Table, from: usize, best: &mut Best) {
    for row in from..table.len() {
        best.offer(&[table.score(row)], &[row as u32]);
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{Best, Table, offer_rest};
    use crate::floor::vm::wide::{score4, score8};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512vl,avx512bw")]
    pub(super) unsafe fn avx512(table: &Table, best: &mut Best) -> Vec<u32> {
        best.start(table.take, table.x);
        let whole = table.len() / 8 * 8;
        for at in (0..whole).step_by(8) {
            let scores = unsafe { score8(table, at) };
            if _mm512_cmp_pd_mask::<_CMP_GE_OQ>(scores, _mm512_set1_pd(best.limit)) != 0 {
                let mut block = [0.0; 8];
                unsafe { _mm512_storeu_pd(block.as_mut_ptr(), scores) };
                best.offer(&block, &rows(at));
            }
        }
        offer_rest(table, whole, best);
        best.finish()
    }

    #[target_feature(enable = "avx2,popcnt")]
    pub(super) unsafe fn avx2(table: &Table, best: &mut Best) -> Vec<u32> {
        best.start(table.take, table.x);
        let whole = table.len() / 8 * 8;
        for at in (0..whole).step_by(8) {
            let (low, high) = unsafe { (score4(table, at), score4(table, at + 4)) };
            let limit = _mm256_set1_pd(best.limit);
            let good = _mm256_or_pd(_mm256_cmp_pd::<_CMP_GE_OQ>(low, limit), _mm256_cmp_pd::<_CMP_GE_OQ>(high, limit));
            if _mm256_movemask_pd(good) != 0 {
                let mut block = [0.0; 8];
                unsafe {
                    _mm256_storeu_pd(block.as_mut_ptr(), low);
                    _mm256_storeu_pd(block.as_mut_ptr().add(4), high);
                }
                best.offer(&block, &rows(at));
            }
        }
        offer_rest(table, whole, best);
        best.finish()
    }

    #[inline(always)]
    fn rows(at: usize) -> [u32; 8] {
        std::array::from_fn(|lane| (at + lane) as u32)
    }
}
