//! Whether keys have members: each pair of a key and a member is asked for once, in one command for each key.
//!
//! A command has a limited number of members, so that no server is held up by one, and a limited number of commands is on its way at a time.

use crate::error::TaskError;
use crate::store::{DistinctKeys, KeyBuffer, KeyedRead, MemberOf};
use crate::task::KeyedReads;
use futures_util::future::try_join_all;

/// The members of one command.
const MEMBERS_MAX: usize = 5_000;
/// The commands that are on their way at a time.
const COMMANDS_MAX: usize = 256;
/// Where in a pair the member begins: behind the place of its key.
const PLACE_BYTES: usize = size_of::<u32>();

/// Pairs of a key, by its place among those that are read, and a member. Each is there once.
#[derive(Default)]
pub struct AskedMembers {
    pairs: DistinctKeys,
    bytes: usize,
}

impl AskedMembers {
    /// The place of a pair, which is added where it is new.
    pub fn add(&mut self, key: u32, member: impl FnOnce(&mut Vec<u8>)) -> u32 {
        let mut bytes = 0;
        let place = self.pairs.add(|out| {
            let start = out.len();
            out.extend_from_slice(&key.to_be_bytes());
            member(out);
            bytes = out.len() - start;
        });
        self.bytes += bytes;
        place
    }

    /// How many bytes have been added.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }
}

/// A command: the place of its key, its members, and where among the pairs each stands.
struct Command {
    key: usize,
    members: KeyBuffer,
    places: Vec<usize>,
}

fn commands(pairs: &KeyBuffer) -> Vec<Command> {
    let key_of = |place: usize| pairs.get(place).first_chunk().map_or(0, |key| u32::from_be_bytes(*key) as usize);
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    // Those of one key stay in their order.
    order.sort_by_key(|place| key_of(*place));
    let mut commands: Vec<Command> = Vec::new();
    for place in order {
        let key = key_of(place);
        let is_full = |command: &Command| command.key != key || command.places.len() == MEMBERS_MAX;
        if commands.last().is_none_or(is_full) {
            commands.push(Command { key, members: KeyBuffer::default(), places: Vec::new() });
        }
        if let Some(command) = commands.last_mut() {
            command.members.push(|out| out.extend_from_slice(&pairs.get(place)[PLACE_BYTES..]));
            command.places.push(place);
        }
    }
    commands
}

impl KeyedReads<'_> {
    /// Whether each pair is there. A key that is not there has no members; one of another type fails the step.
    pub async fn members(self, of: MemberOf, keys: &KeyBuffer, asked: AskedMembers) -> Result<Vec<bool>, TaskError> {
        let pairs = asked.pairs.into_keys();
        let mut is_there = vec![false; pairs.len()];
        for commands in commands(&pairs).chunks(COMMANDS_MAX) {
            let replies = commands.iter().map(|Command { key, members, .. }| {
                let read = KeyedRead::Members { of, members: members.written() };
                self.read_strictly(read, keys.keys().part(*key..*key + 1))
            });
            for (command, replies) in commands.iter().zip(try_join_all(replies).await?) {
                // A store answers for each member, or fails.
                for (place, item) in command.places.iter().zip(replies.items(0)) {
                    is_there[*place] = of.is_there(item);
                }
            }
        }
        Ok(is_there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_members_of_one_key_and_no_more_than_its_share() {
        let mut asked = AskedMembers::default();
        let mut add = |key: u32, member: &str| asked.add(key, |out| out.extend_from_slice(member.as_bytes()));
        assert_eq!((add(1, "a"), add(0, "a"), add(1, "b"), add(1, "a"), add(0, "")), (0, 1, 2, 0, 3));
        for member in 0..MEMBERS_MAX {
            add(1, &member.to_string());
        }
        let pairs = asked.pairs.into_keys();
        let found: Vec<(usize, usize, usize)> =
            commands(&pairs).iter().map(|command| (command.key, command.members.len(), command.places[0])).collect();
        assert_eq!(found, [(0, 2, 1), (1, MEMBERS_MAX, 0), (1, 2, MEMBERS_MAX + 2)]);
        assert_eq!(commands(&KeyBuffer::default()).len(), 0);
    }
}
