//! Runs a body of loops with the widest vectors that this processor has.
//!
//! The body is ordinary safe Rust. It is compiled once for the baseline and once for each feature set below, and the
//! processor is asked at run time. The only unsafe code of the project is the call into a copy whose features were just
//! found present. What is passed must be `#[inline(always)]` all the way down, or it stays at the baseline width.

/// Calls `body`, inlined into a function that may use wide vectors.
#[inline(always)]
pub fn wide<R>(body: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            #[expect(unsafe_code, reason = "all features of `with_avx512` were detected by the condition above")]
            return unsafe { with_avx512(body) };
        }
        if has_avx2() {
            #[expect(unsafe_code, reason = "all features of `with_avx2` were detected by the condition above")]
            return unsafe { with_avx2(body) };
        }
    }
    body()
}

/// What `body` gives at each width that this processor has, the baseline first: for tests that compare them.
pub fn each_width<R>(body: impl Fn() -> R) -> Vec<R> {
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut, reason = "there is one width"))]
    let mut results = vec![body()];
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx2() {
            #[expect(unsafe_code, reason = "all features of `with_avx2` were detected by the condition above")]
            results.push(unsafe { with_avx2(&body) });
        }
        if has_avx512() {
            #[expect(unsafe_code, reason = "all features of `with_avx512` were detected by the condition above")]
            results.push(unsafe { with_avx512(&body) });
        }
    }
    results
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
fn with_avx512<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2,popcnt")]
fn with_avx2<R>(body: impl FnOnce() -> R) -> R {
    body()
}
