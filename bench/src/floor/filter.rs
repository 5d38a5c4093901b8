//! The rows whose score is at least `x`, as a new list in row order.

use crate::floor::Width;

pub fn at_least(scores: &[f64], x: f64, width: Width) -> Vec<u32> {
    // Whole vectors are stored and only the kept lanes advance, so the last store may reach this far over the end.
    let mut rows: Vec<u32> = Vec::with_capacity(scores.len() + 8);
    let (mut kept, done) = match width {
        // SAFETY: the features were detected; there is room for all rows and one vector.
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 => unsafe { wide::avx512(scores, x, rows.as_mut_ptr()) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => unsafe { wide::avx2(scores, x, rows.as_mut_ptr()) },
        _ => (0, 0),
    };
    for (row, &score) in scores.iter().enumerate().skip(done) {
        // SAFETY: `kept <= row`, within the capacity.
        unsafe { rows.as_mut_ptr().add(kept).write(row as u32) };
        kept += usize::from(score >= x);
    }
    // SAFETY: `kept` rows were written.
    unsafe { rows.set_len(kept) };
    rows
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;

    /// By mask of eight lanes: the kept lanes first, a byte each.
    const LANES: [u64; 256] = {
        let mut table = [0; 256];
        let mut mask = 0;
        while mask < 256 {
            let (mut lane, mut place) = (0, 0);
            while lane < 8 {
                if mask >> lane & 1 == 1 {
                    table[mask] |= (lane as u64) << (8 * place);
                    place += 1;
                }
                lane += 1;
            }
            mask += 1;
        }
        table
    };

    #[target_feature(enable = "avx512f,avx512vl,avx512bw")]
    pub(super) unsafe fn avx512(scores: &[f64], x: f64, out: *mut u32) -> (usize, usize) {
        let whole = scores.len() / 8 * 8;
        let x = _mm512_set1_pd(x);
        let mut rows = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let mut kept = 0;
        for at in (0..whole).step_by(8) {
            unsafe {
                let mask = _mm512_cmp_pd_mask::<_CMP_GE_OQ>(_mm512_loadu_pd(scores.as_ptr().add(at)), x);
                _mm256_storeu_si256(out.add(kept).cast(), _mm256_maskz_compress_epi32(mask, rows));
                kept += mask.count_ones() as usize;
            }
            rows = _mm256_add_epi32(rows, _mm256_set1_epi32(8));
        }
        (kept, whole)
    }

    #[target_feature(enable = "avx2,popcnt")]
    pub(super) unsafe fn avx2(scores: &[f64], x: f64, out: *mut u32) -> (usize, usize) {
        let whole = scores.len() / 8 * 8;
        let x = _mm256_set1_pd(x);
        let mut kept = 0;
        for at in (0..whole).step_by(8) {
            unsafe {
                let low = _mm256_cmp_pd::<_CMP_GE_OQ>(_mm256_loadu_pd(scores.as_ptr().add(at)), x);
                let high = _mm256_cmp_pd::<_CMP_GE_OQ>(_mm256_loadu_pd(scores.as_ptr().add(at + 4)), x);
                let mask = (_mm256_movemask_pd(low) | _mm256_movemask_pd(high) << 4) as usize;
                let lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(LANES[mask] as i64));
                _mm256_storeu_si256(out.add(kept).cast(), _mm256_add_epi32(lanes, _mm256_set1_epi32(at as i32)));
                kept += mask.count_ones() as usize;
            }
        }
        (kept, whole)
    }
}
