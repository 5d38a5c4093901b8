//! An order in which no stretch of the list has too many rows of a group.
//!
//! Rows are picked one by one. Each pick is the first row, of those that are left and within the look-ahead, that breaks no rule. If there
//! is none, the last rule is dropped for this pick, then the one before it, and so on; without rules it is the first row that is left.
//!
//! Rows that are alike to all rules wait in one queue, and only the first of a queue is looked at. Queues that no pick can make free again,
//! because a rule counts the whole list, are looked at after all others.

use crate::kernel::groups::Groups;
use crate::stop::{Picking, ROWS_A_LOOK, Stop, Stopped};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// At most `max` rows of a group among `window` neighbours, or in the whole list where that is 0. Rows that are in no group are free.
#[derive(Debug)]
pub struct GroupLimit {
    pub groups: Groups,
    pub max: usize,
    pub window: usize,
    /// The groups of the rows before the list, such as those of earlier pages, in their order.
    pub before: Vec<u32>,
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Picks {
    /// Positions of the view: those that were picked, and then the others in their order.
    pub order: Vec<usize>,
    pub picked: usize,
    /// How many picks break a rule.
    pub relaxed: usize,
}

/// How a rule stands after the picks so far.
struct RuleState<'a> {
    rule: &'a GroupLimit,
    counts: Vec<usize>,
    /// The groups of the last picks.
    recent: VecDeque<u32>,
}

impl RuleState<'_> {
    /// Whether a row of this group may not come next.
    fn forbids(&self, group: u32) -> bool {
        self.counts.get(group as usize).is_some_and(|count| *count >= self.rule.max)
    }

    fn pick(&mut self, group: u32) {
        self.counts.get_mut(group as usize).into_iter().for_each(|count| *count += 1);
        if self.rule.window > 0 {
            self.recent.push_back(group);
            if self.recent.len() >= self.rule.window {
                // No group has this number where the row was in none.
                let left = self.recent.pop_front().and_then(|left| self.counts.get_mut(left as usize));
                left.into_iter().for_each(|count| *count -= 1);
            }
        }
    }
}

/// No further row.
const END: u32 = u32::MAX;

/// Rows that are alike to all rules, in queues.
struct Queues {
    rules: usize,
    /// By queue and rule.
    groups: Vec<u32>,
    /// By queue: the first row that is left.
    first: Vec<u32>,
    /// By row: the one after it in its queue.
    next: Vec<u32>,
}

impl Queues {
    fn new(rules: &[GroupLimit], count: usize, stop: Stop<'_>) -> Result<Queues, Stopped> {
        let numbers = numbers(rules, count, stop)?;
        let mut queues = Queues { rules: rules.len(), groups: Vec::new(), first: Vec::new(), next: vec![END; count] };
        let mut last: Vec<u32> = Vec::new();
        for start in stop.starts(count) {
            let start = start?;
            for (position, number) in numbers.iter().enumerate().skip(start).take(ROWS_A_LOOK) {
                let number = *number as usize;
                // Numbers are given in the order of rows.
                if number == last.len() {
                    queues.groups.extend(rules.iter().map(|rule| rule.groups.of_rows[position]));
                    queues.first.push(position as u32);
                    last.push(position as u32);
                } else {
                    queues.next[last[number] as usize] = position as u32;
                    last[number] = position as u32;
                }
            }
        }
        Ok(queues)
    }

    fn groups(&self, number: usize) -> &[u32] {
        &self.groups[number * self.rules..][..self.rules]
    }

    /// The first row of a queue, if there is one.
    fn first(&self, number: usize) -> Option<u32> {
        Some(self.first[number]).filter(|first| *first != END)
    }

    fn take(&mut self, number: usize) {
        self.first[number] = self.next[self.first[number] as usize];
    }
}

/// The queue of each row; a queue has its number by its first row.
fn numbers(rules: &[GroupLimit], count: usize, stop: Stop<'_>) -> Result<Vec<u32>, Stopped> {
    let mut numbers = vec![0u32; count];
    for rule in rules {
        let (mut known, mut by_group): (HashMap<(u32, u32), u32>, Vec<u32>) = Default::default();
        let is_first = std::ptr::eq(rule, &rules[0]);
        if is_first {
            by_group = vec![END; rule.groups.count + 1];
        }
        let mut next = 0;
        for start in stop.starts(count) {
            let start = start?;
            let some = start..count.min(start + ROWS_A_LOOK);
            for (number, group) in numbers[some.clone()].iter_mut().zip(&rule.groups.of_rows[some]) {
                // So far all rows are alike, and the group alone tells them apart.
                let slot = match is_first {
                    true => &mut by_group[(*group as usize).min(rule.groups.count)],
                    false => known.entry((*number, *group)).or_insert(END),
                };
                if *slot == END {
                    *slot = next;
                    next += 1;
                }
                *number = *slot;
            }
        }
    }
    Ok(numbers)
}

/// The first row of a queue and the queue's number, as one number so that comparing two is one comparison.
type Waiting = Reverse<u64>;

fn waiting_queue(first: u32, number: usize) -> Waiting {
    // There are no more queues than rows, which are numbered with 32 bits.
    Reverse(u64::from(first) << 32 | number as u64)
}

/// Picks `size` of `count` rows, or fewer where there is no time for more; `lookahead` 0 is all.
pub fn diversified(
    rules: &[GroupLimit],
    count: usize,
    size: usize,
    lookahead: usize,
    picking: Picking<'_>,
) -> Result<Picks, Stopped> {
    let mut queues = Queues::new(rules, count, picking.stop)?;
    let state = |rule| RuleState { rule, counts: vec![0; rule.groups.count], recent: VecDeque::new() };
    let mut states: Vec<RuleState<'_>> = rules.iter().map(state).collect();
    for state in &mut states {
        state.rule.before.iter().for_each(|group| state.pick(*group));
    }
    // By how many rules, counted from the first, a queue can still keep: its first row and its number.
    let mut waiting: Vec<BinaryHeap<Waiting>> = (0..=rules.len()).map(|_| BinaryHeap::new()).collect();
    waiting[rules.len()] =
        queues.first.iter().enumerate().map(|(number, first)| waiting_queue(*first, number)).collect();
    let mut left = (lookahead > 0).then(|| Left::new(count));
    let (mut picks, mut is_picked) = (Picks::default(), vec![false; count]);
    let mut aside = Vec::new();
    while picks.picked < size.min(count) && picking.goes_on(picks.picked)? {
        // The best so far: how many rules it keeps, its position, its queue and where that waits.
        let mut best: Option<(usize, u32, usize, usize)> = None;
        for level in (0..waiting.len()).rev() {
            if best.is_some_and(|(keeps, ..)| keeps > level) {
                break;
            }
            while let Some(Reverse(queue)) = waiting[level].pop() {
                let (position, number) = ((queue >> 32) as u32, queue as u32 as usize);
                let groups = queues.groups(number);
                let broken = (0..level).find(|rule| states[*rule].forbids(groups[*rule]));
                // What a rule forbids for good waits where only the rules before it count.
                if let Some(rule) = broken.filter(|rule| rules[*rule].window == 0) {
                    waiting[rule].push(waiting_queue(position, number));
                    continue;
                }
                aside.push((level, position, number));
                if left.as_ref().is_some_and(|left| left.before(position) >= lookahead) {
                    break;
                }
                let keeps = broken.unwrap_or(level);
                if best.is_none_or(|(most, first, ..)| keeps > most || (keeps == most && position < first)) {
                    best = Some((keeps, position, number, level));
                }
                if broken.is_none() {
                    break;
                }
            }
        }
        // There is a row left, and the first of them is never out of reach.
        let Some((keeps, position, number, level)) = best else { break };
        for (level, position, other) in aside.drain(..).filter(|(.., other)| *other != number) {
            waiting[level].push(waiting_queue(position, other));
        }
        queues.take(number);
        waiting[level].extend(queues.first(number).map(|next| waiting_queue(next, number)));
        states.iter_mut().zip(queues.groups(number)).for_each(|(state, group)| state.pick(*group));
        left.iter_mut().for_each(|left| left.remove(position));
        is_picked[position as usize] = true;
        picks.order.push(position as usize);
        picks.picked += 1;
        picks.relaxed += usize::from(keeps < rules.len());
    }
    picks.order.extend((0..count).filter(|position| !is_picked[*position]));
    Ok(picks)
}

/// How many of the rows before a position are left: a Fenwick tree.
struct Left(Vec<u32>);

impl Left {
    fn new(count: usize) -> Left {
        Left((0..=count).map(|at| (at & at.wrapping_neg()) as u32).collect())
    }

    fn remove(&mut self, position: u32) {
        let mut at = position as usize + 1;
        while at < self.0.len() {
            self.0[at] -= 1;
            at += at & at.wrapping_neg();
        }
    }

    fn before(&self, position: u32) -> usize {
        let (mut at, mut count) = (position as usize, 0);
        while at > 0 {
            count += self.0[at] as usize;
            at &= at - 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::groups::NO_GROUP;
    use proptest::prelude::*;

    /// By the words of the header.
    fn naive(rules: &[GroupLimit], count: usize, size: usize, lookahead: usize) -> Picks {
        let mut picks = Picks::default();
        let mut left: Vec<usize> = (0..count).collect();
        let forbids = |rule: &GroupLimit, order: &[usize], position: usize| {
            let group = rule.groups.of_rows[position];
            let of_order = order.iter().map(|other| rule.groups.of_rows[*other]);
            let all: Vec<u32> = rule.before.iter().copied().chain(of_order).collect();
            let recent = match rule.window {
                0 => &all[..],
                window => &all[all.len().saturating_sub(window - 1)..],
            };
            group != NO_GROUP && recent.iter().filter(|other| **other == group).count() >= rule.max
        };
        while picks.picked < size.min(count) {
            let reach = if lookahead == 0 { left.len() } else { lookahead.min(left.len()) };
            let pick = (0..=rules.len()).rev().find_map(|level| {
                let keeps = |at: &usize| rules[..level].iter().all(|rule| !forbids(rule, &picks.order, left[*at]));
                (0..reach).find(keeps).map(|at| (at, level))
            });
            let (at, level) = pick.unwrap();
            picks.order.push(left.remove(at));
            picks.picked += 1;
            picks.relaxed += usize::from(level < rules.len());
        }
        picks.order.extend(left);
        picks
    }

    fn rule(count: usize) -> impl Strategy<Value = GroupLimit> {
        let group = || prop_oneof![5 => 0..4u32, 1 => Just(NO_GROUP)];
        let groups = (proptest::collection::vec(group(), count), proptest::collection::vec(group(), 0..8));
        (groups, 1..4usize, 0..6usize).prop_map(|((of_rows, before), max, window)| GroupLimit {
            groups: Groups { of_rows, count: 4 },
            max,
            window,
            before,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn rows_are_picked_by_the_words_of_the_header(
            (count, rules) in (0..30usize).prop_flat_map(|count| (Just(count), proptest::collection::vec(rule(count), 0..4))),
            size in 0..35usize,
            lookahead in prop_oneof![Just(0), 1..12usize],
        ) {
            let found = diversified(&rules, count, size, lookahead, Picking::default()).unwrap();
            prop_assert_eq!(&found, &naive(&rules, count, size, lookahead));
            let mut sorted = found.order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..count).collect::<Vec<usize>>());
        }
    }
}
