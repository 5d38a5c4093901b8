//! Model files that somebody broke: refused with a place, or read and scored, never a crash, a hang or memory without bound.

use crate::{bytes, models};
use rankd_column::model::{Model, ModelOutput, ScoreScratch, Scoring};
use rankd_column::stop::{Picking, Stop};
use rankd_plan::model::{Format, ModelPlace, read};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

struct Counting;

thread_local! {
    pub(crate) static NOW: Cell<isize> = const { Cell::new(0) };
    pub(crate) static PEAK: Cell<isize> = const { Cell::new(0) };
    pub(crate) static CALLS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator as it is; the counters touch no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        NOW.set(NOW.get() + layout.size() as isize);
        PEAK.set(PEAK.get().max(NOW.get()));
        CALLS.set(CALLS.get() + 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.set(NOW.get() - layout.size() as isize);
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A damaged file of some kilobytes takes no more than this to read and to score.
const MEMORY_MAX: isize = 8 << 20;
/// A coarse guard for slow machines: a file takes less than a millisecond.
const TIME_MAX: Duration = Duration::from_secs(5);

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        ((self.0 >> 33) % limit.max(1) as u64) as usize
    }
}

/// One of many ways to break a file.
fn damaged(random: &mut Random, file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    for _ in 0..1 + random.below(3) {
        let (at, len) = (random.below(file.len()), 1 + random.below(40));
        let end = (at + len).min(file.len());
        match random.below(8) {
            0 => file[at] ^= 1 << random.below(8),
            1 => file[at] = random.below(256) as u8,
            2 => drop(file.drain(at..end)),
            3 => file.truncate(at),
            4 => {
                let part = file[at..end].to_vec();
                let to = random.below(file.len());
                drop(file.splice(to..to, part));
            }
            5 => {
                // A number becomes another one.
                let digits: Vec<usize> = (0..file.len()).filter(|at| file[*at].is_ascii_digit()).collect();
                if let Some(at) = digits.get(random.below(digits.len())) {
                    file[*at] = b'0' + random.below(10) as u8;
                }
            }
            6 => {
                let large: [&[u8]; 6] =
                    [b"4294967295", b"-1", b"2147483647", b"1e999", b"99999999999999999999", b"nan"];
                drop(file.splice(at..at, large[random.below(6)].iter().copied()));
            }
            _ => {
                let to = random.below(file.len());
                file.swap(at, to);
            }
        }
        if file.is_empty() {
            file.push(b'{');
        }
    }
    file
}

/// Scores some rows and explains one.
fn use_model(model: &Model) {
    let mut inputs = |feature: usize, from: usize, values: &mut [f64]| {
        for (row, value) in values.iter_mut().enumerate() {
            *value = if (row + from).is_multiple_of(7) {
                f64::NAN
            } else {
                (feature as f64 - 3.0) * (row + from) as f64 / 9.0
            };
        }
    };
    let outputs = model.outputs(ModelOutput::Response);
    let mut out = vec![vec![0.0; 300]; outputs];
    let mut slices: Vec<&mut [f64]> = out.iter_mut().map(Vec::as_mut_slice).collect();
    let scoring = Scoring { output: ModelOutput::Response, iterations: usize::MAX };
    let mut scratch = ScoreScratch::default();
    let done = model.score(&mut inputs, 300, scoring, &mut slices, &mut scratch, Picking::default());
    assert_eq!(done, Ok(300));
    // Whatever it says: that there are none is an answer.
    let _ = model.contributions(&mut inputs, 1, 0..outputs, usize::MAX, &mut scratch, Stop::default());
}

fn damage_all(format: Format, extension: &str) {
    let files: Vec<Vec<u8>> = models()
        .iter()
        .filter(|(of, path)| *of == format && path.extension().is_some_and(|found| found == extension))
        .map(|(_, path)| bytes(path))
        .collect();
    let mut random = Random(extension.len() as u64 + format.name().len() as u64);
    let (mut refused, mut read_anyway) = (0, 0);
    for case in 0..1_000 {
        let file = damaged(&mut random, &files[case % files.len()]);
        let before = NOW.get();
        PEAK.set(before);
        #[expect(clippy::disallowed_methods, reason = "a coarse guard")]
        let start = Instant::now();
        match read(format, &file, None) {
            Ok(model) => {
                use_model(&model);
                read_anyway += 1;
            }
            Err(problem) => {
                assert!(!problem.message.is_empty());
                match problem.place {
                    ModelPlace::Byte(at) => assert!(at <= file.len(), "case {case}: {problem}"),
                    ModelPlace::Line { line, column } => assert!(line > 0 && column > 0, "case {case}: {problem}"),
                    ModelPlace::File | ModelPlace::Runtime => panic!("case {case}: {problem}: without a place"),
                }
                refused += 1;
            }
        }
        assert!(start.elapsed() < TIME_MAX, "case {case} took {:?}", start.elapsed());
        assert!(PEAK.get() - before < MEMORY_MAX, "case {case} took {} bytes", PEAK.get() - before);
    }
    assert!(refused > 300 && read_anyway > 10, "{refused} refused, {read_anyway} read");
}

#[test]
fn a_thousand_damaged_lightgbm_files() {
    damage_all(Format::LightGbm, "txt");
}

#[test]
fn a_thousand_damaged_xgboost_files_of_json() {
    damage_all(Format::XgBoost, "json");
}

#[test]
fn a_thousand_damaged_xgboost_files_of_ubjson() {
    damage_all(Format::XgBoost, "ubj");
}

#[test]
fn a_thousand_damaged_catboost_files() {
    damage_all(Format::CatBoost, "json");
}

#[test]
fn nothing_is_allocated_once_a_scratch_has_served_a_model() {
    for (format, path) in models() {
        let model = read(format, &bytes(&path), None).unwrap();
        let mut inputs = |feature: usize, from: usize, values: &mut [f64]| values.fill((feature + from) as f64);
        let mut out = vec![vec![0.0; 300]; model.outputs(ModelOutput::Response)];
        let mut slices: Vec<&mut [f64]> = out.iter_mut().map(Vec::as_mut_slice).collect();
        let scoring = Scoring { output: ModelOutput::Response, iterations: usize::MAX };
        let mut scratch = ScoreScratch::default();
        let mut score = || model.score(&mut inputs, 300, scoring, &mut slices, &mut scratch, Picking::default());
        assert_eq!(score(), Ok(300));
        let before = CALLS.get();
        assert_eq!(score(), Ok(300));
        assert_eq!(CALLS.get(), before, "{}", path.display());
    }
}
