//! `score = a * b + coalesce(c, 0.5) * w` into a new column.

use crate::data::{C_DEFAULT, Table};
use crate::floor::Width;

pub fn scores(table: &Table, width: Width) -> Vec<f64> {
    let rows = table.len();
    let mut scores = Vec::with_capacity(rows);
    let done = match width {
        // SAFETY: the features were detected; there is room for `rows` scores.
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 => unsafe { wide::avx512(table, scores.as_mut_ptr()) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => unsafe { wide::avx2(table, scores.as_mut_ptr()) },
        _ => 0,
    };
    // SAFETY: the first `done` scores were written, and `done <= rows`.
    unsafe { scores.set_len(done) };
    scores.extend((done..rows).map(|row| table.score(row)));
    scores
}

#[cfg(target_arch = "x86_64")]
pub(super) mod wide {
    use super::{C_DEFAULT, Table};
    use std::arch::x86_64::*;

    /// Eight scores from row `at`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw")]
    pub(in crate::floor) unsafe fn score8(table: &Table, at: usize) -> __m512d {
        unsafe {
            let valid = _mm_loadl_epi64(table.c_valid.as_ptr().add(at).cast());
            let valid = _mm_test_epi8_mask(valid, valid) as u8;
            let c = _mm512_mask_loadu_pd(_mm512_set1_pd(C_DEFAULT), valid, table.c.as_ptr().add(at));
            let ab =
                _mm512_mul_pd(_mm512_loadu_pd(table.a.as_ptr().add(at)), _mm512_loadu_pd(table.b.as_ptr().add(at)));
            _mm512_add_pd(ab, _mm512_mul_pd(c, _mm512_set1_pd(table.w)))
        }
    }

    /// Four scores from row `at`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::floor) unsafe fn score4(table: &Table, at: usize) -> __m256d {
        unsafe {
            let valid = _mm_cvtsi32_si128(table.c_valid.as_ptr().add(at).cast::<i32>().read_unaligned());
            let there = _mm256_cmpgt_epi64(_mm256_cvtepi8_epi64(valid), _mm256_setzero_si256());
            let c = _mm256_loadu_pd(table.c.as_ptr().add(at));
            let c = _mm256_blendv_pd(_mm256_set1_pd(C_DEFAULT), c, _mm256_castsi256_pd(there));
            let ab =
                _mm256_mul_pd(_mm256_loadu_pd(table.a.as_ptr().add(at)), _mm256_loadu_pd(table.b.as_ptr().add(at)));
            _mm256_add_pd(ab, _mm256_mul_pd(c, _mm256_set1_pd(table.w)))
        }
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512bw")]
    pub(super) unsafe fn avx512(table: &Table, out: *mut f64) -> usize {
        let whole = table.len() / 8 * 8;
        for at in (0..whole).step_by(8) {
            unsafe { _mm512_storeu_pd(out.add(at), score8(table, at)) };
        }
        whole
    }

    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn avx2(table: &Table, out: *mut f64) -> usize {
        let whole = table.len() / 4 * 4;
        for at in (0..whole).step_by(4) {
            unsafe { _mm256_storeu_pd(out.add(at), score4(table, at)) };
        }
        whole
    }
}
