//! An allocator that counts what each thread holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    NOW.set(NOW.get() + bytes);
    PEAK.set(PEAK.get().max(NOW.get()));
}

// SAFETY: every call is passed on to the system's allocator as it is; the counters are plain thread-local numbers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Where it is moved, both are there for a moment.
        count(size as isize);
        let moved = unsafe { System.realloc(memory, layout, size) };
        NOW.set(NOW.get() - layout.size() as isize);
        moved
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.set(NOW.get() - layout.size() as isize);
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Calls a function on this thread. Gives what it gave, and the most bytes that it held meanwhile.
pub(crate) fn peak_of<R>(call: impl FnOnce() -> R) -> (R, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = call();
    (result, (PEAK.get() - before) as usize)
}
