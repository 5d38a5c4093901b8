//! temp
use rankd_bench::{data::Table, rankd::Rankd};
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap();
    let rows: usize = args.next().unwrap().parse().unwrap();
    let calls: usize = args.next().unwrap().parse().unwrap();
    let table = Table::new(rows);
    let mut r = Rankd::new(&table);
    for _ in 0..calls {
        match &*what {
            "vm" => drop(std::hint::black_box(r.vm())),
            "top" => drop(std::hint::black_box(r.top())),
            _ => drop(std::hint::black_box(r.sort())),
        }
    }
}
