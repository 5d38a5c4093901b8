//! Whether the rows that readers get in place of a node's own have what is read of them, and let nothing pass that would have been
//! dropped.
//!
//! Two passes. Backwards: which keys later nodes read of each node by name. Forwards: what substitutes may have left out of the
//! rows of each node, as its readers see them. A filter that goes by such a key, or by rows that may be missing, is refused: it would
//! let pass what it is there to stop, far away from the node that says so.

use crate::check::flow::{reads, right_input, right_reads, write};
use crate::check::keys::Keys;
use crate::check::{Draft, flow};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::plan::{NodeIx, Substitute};
use crate::registry::{Absent, Registry};
use crate::signature::{Param, RowEffect, Signature};
use crate::wire::WirePlan;
use rankd_column::Key;
use std::collections::BTreeMap;
use std::rc::Rc;

/// `after`: the keys that can be present after each node.
pub(super) fn check(
    wire: &WirePlan<'_>,
    drafts: &[Draft],
    order: &[NodeIx],
    after: &[Keys],
    registry: &Registry,
    found: &mut Diagnostics,
) {
    // Most plans have none.
    if drafts.iter().all(|draft| draft.substitutes.each().next().is_none() && draft.reserves == 0) {
        return;
    }
    let pass = Pass { wire, drafts, after, registry };
    pass.report_lacking(&pass.read_later(order), found);
    pass.report_opened(order, found);
}

struct Pass<'p> {
    wire: &'p WirePlan<'p>,
    drafts: &'p [Draft],
    after: &'p [Keys],
    registry: &'p Registry,
}

/// What substitutes may have left out of the rows of a node, as its readers see them. Each with the node that they stand in for.
#[derive(Clone, Default)]
struct LeftOut {
    /// Keys without a value that they would have had. Shared, because most nodes leave them as they are.
    keys: Rc<BTreeMap<Key, NodeIx>>,
    /// Rows that would have been there.
    rows: Option<NodeIx>,
}

impl LeftOut {
    fn add_keys(&mut self, keys: impl IntoIterator<Item = (Key, NodeIx)>) {
        let mut keys = keys.into_iter().filter(|(key, _)| !self.keys.contains_key(key)).peekable();
        if keys.peek().is_some() {
            let more: Vec<(Key, NodeIx)> = keys.collect();
            Rc::make_mut(&mut self.keys).extend(more);
        }
    }

    fn add(&mut self, other: &LeftOut) {
        if self.keys.is_empty() {
            self.keys = other.keys.clone();
        } else if !Rc::ptr_eq(&self.keys, &other.keys) {
            self.add_keys(other.keys.iter().map(|(key, at)| (*key, *at)));
        }
        self.rows = self.rows.or(other.rows);
    }

    fn remove(&mut self, keys: &Keys) {
        if self.keys.keys().any(|key| keys.has(*key)) {
            Rc::make_mut(&mut self.keys).retain(|key, _| !keys.has(*key));
        }
    }
}

impl Pass<'_> {
    fn each(&self) -> impl Iterator<Item = (usize, &Draft, Signature)> {
        self.drafts.iter().enumerate().filter_map(|(at, draft)| Some((at, draft, draft.signature?)))
    }

    /// The inputs whose columns a node's own rows have.
    fn columns_from<'d>(&self, draft: &'d Draft) -> impl Iterator<Item = NodeIx> + use<'d> {
        let count = match draft.rows() {
            Some(RowEffect::Appended) => draft.inputs.len(),
            Some(
                RowEffect::Same
                | RowEffect::Fewer
                | RowEffect::FewerWhere(_)
                | RowEffect::Reordered
                | RowEffect::GroupedWhere(_),
            ) => 1,
            Some(RowEffect::Source | RowEffect::FanOut | RowEffect::Grouped) | None => 0,
        };
        draft.inputs.iter().take(count).flatten().copied()
    }

    /// The keys that a node writes, as far as they are known.
    fn written(&self, draft: &Draft, signature: Signature, unknown: fn(&mut Keys)) -> Keys {
        let mut keys = Keys::none(self.registry);
        write(&mut keys, draft, signature, self.registry, unknown);
        keys
    }

    /// The keys that nodes read later of each node's rows, by name.
    fn read_later(&self, order: &[NodeIx]) -> Vec<Keys> {
        let mut later = vec![Keys::none(self.registry); self.drafts.len()];
        for &at in order.iter().rev() {
            let draft = &self.drafts[at as usize];
            let Some(signature) = draft.signature else { continue };
            let of_node = later[at as usize].clone();
            for substitute in draft.substitutes.each().map(|(_, substitute)| substitute) {
                if let Some(other) = rows_of(draft, substitute) {
                    later[other as usize].add_all(&of_node);
                }
            }
            let mut of_input = of_node;
            of_input.remove(&self.written(draft, signature, |_| {}));
            let mut named = Keys::none(self.registry);
            reads(draft, signature).flat_map(|(_, keys)| keys).for_each(|key| named.add(key));
            for input in self.columns_from(draft) {
                later[input as usize].add_all(&of_input);
                later[input as usize].add_all(&named);
            }
            if let Some(first) = draft.inputs.first().copied().flatten() {
                later[first as usize].add_all(&named);
            }
            if let Some(right) = right_of(draft, signature) {
                right_reads(draft, signature).flat_map(|(_, keys)| keys).for_each(|key| later[right as usize].add(key));
            }
        }
        later
    }

    /// Reports nodes that stand in for others without a key that is read of those.
    fn report_lacking(&self, later: &[Keys], found: &mut Diagnostics) {
        for (at, draft, _) in self.each() {
            for (field, other) in draft.substitutes.nodes() {
                let mut lacking = later[at].clone();
                lacking.keep(&self.after[at]);
                lacking.remove(&self.after[other as usize]);
                let names = self.names(lacking.list(self.registry).filter(|key| *key != Key::ID));
                if names.is_empty() {
                    continue;
                }
                let message = format!(
                    "the {field} of {} is {}, whose rows cannot have {names}, which later nodes read",
                    self.node(at as NodeIx),
                    self.node(other)
                );
                let lacking = Diagnostic::new(Code::SubstituteLacksKey, format!("/nodes/{at}/{field}"), message);
                let help = self.after[other as usize].listed(self.registry);
                found.push(lacking.help(help).source(draft.source.clone()));
            }
        }
    }

    /// Follows what substitutes leave out, and reports what goes by it.
    fn report_opened(&self, order: &[NodeIx], found: &mut Diagnostics) {
        let mut left_out = vec![LeftOut::default(); self.drafts.len()];
        // The keys whose columns the rows of a node have for certain, as its readers see them.
        let mut sure = vec![Keys::none(self.registry); self.drafts.len()];
        for &at in order {
            let draft = &self.drafts[at as usize];
            let Some(signature) = draft.signature else { continue };
            let written = self.written(draft, signature, |_| {});
            self.report_drops(at, draft, signature, &left_out, found);
            let mut out = self.left_of_own(draft, signature, &written, &left_out);
            // A reserve that weather strikes gives no rows.
            if draft.reserves > 0 {
                self.add_rows(&mut out, at);
            }
            let mut has = written;
            for (nth, input) in self.columns_from(draft).enumerate() {
                if nth == 0 {
                    has.add_all(&sure[input as usize]);
                } else {
                    has.keep(&sure[input as usize]);
                }
            }
            for (field, substitute) in draft.substitutes.each() {
                if let Some(other) = rows_of(draft, substitute) {
                    out.add(&left_out[other as usize]);
                }
                match substitute {
                    Substitute::NoRows => self.add_rows(&mut out, at),
                    Substitute::FirstInput if draft.rows() == Some(RowEffect::Appended) => self.add_rows(&mut out, at),
                    Substitute::FirstInput => {
                        let missing = self.missing_of_input(draft, signature, &sure);
                        self.report_no_value(at, draft, field, &missing, found);
                        let mut gone = Keys::none(self.registry);
                        missing.iter().for_each(|key| gone.add(*key));
                        has.remove(&gone);
                        if self.wire.nodes[at as usize].fail_open.is_none() {
                            out.add_keys(missing.into_iter().map(|key| (key, at)));
                        }
                    }
                    // Keys that it cannot have and that are read were reported; what it has itself left out is added above.
                    Substitute::Node(other) => has.keep(&sure[other as usize]),
                }
            }
            left_out[at as usize] = out;
            sure[at as usize] = has;
        }
    }

    fn add_rows(&self, out: &mut LeftOut, at: NodeIx) {
        if self.wire.nodes[at as usize].fail_open.is_none() {
            out.rows = out.rows.or(Some(at));
        }
    }

    /// What is left out of a node's own rows, by what is left out of its inputs.
    fn left_of_own(&self, draft: &Draft, signature: Signature, written: &Keys, left_out: &[LeftOut]) -> LeftOut {
        let mut out = LeftOut::default();
        for input in self.columns_from(draft) {
            out.add(&left_out[input as usize]);
        }
        out.remove(written);
        let first = draft.inputs.first().copied().flatten().map(|first| &left_out[first as usize]);
        let appended = draft.rows() == Some(RowEffect::Appended);
        let right = right_of(draft, signature).filter(|_| !appended).map(|right| &left_out[right as usize]);
        let grouped = draft.rows() == Some(RowEffect::Grouped);
        let carries = |name: &str| {
            let param = signature.contract.params.iter().find(|param| param.name == name);
            let reads = |param: &&Param| signature.contract.reads_from(param);
            param.filter(reads).is_some_and(|param| grouped || signature.contract.writes_to(param))
        };
        // Whatever is computed or looked up by a key that is left out is left out, too.
        let (mut blamed, mut carried, mut ungrouped) = (None, Keys::none(self.registry), None);
        for (param, keys) in reads(draft, signature) {
            let mut missing = keys.iter().filter_map(|key| Some((*key, *first?.keys.get(key)?))).peekable();
            match carries(param.name) {
                true => {
                    keys.iter().for_each(|key| carried.add(*key));
                    ungrouped = ungrouped.or(missing.peek().map(|(_, at)| *at).filter(|_| grouped));
                    out.add_keys(missing);
                }
                false => blamed = missing.map(|(_, at)| at).next().or(blamed),
            }
        }
        let of_right = right_reads(draft, signature).flat_map(|(_, keys)| keys);
        let of_right = of_right.filter_map(|key| right?.keys.get(&key).copied()).next();
        let blamed = blamed.or(of_right).or(right.and_then(|right| right.rows));
        if let Some(at) = blamed {
            let keys = written.list(self.registry).filter(|key| *key != Key::ID && self.has_no_default(*key));
            out.add_keys(keys.filter(|key| !carried.has(*key)).map(|key| (key, at)));
        }
        let of_input = first.and_then(|first| first.rows);
        if draft.rows() == Some(RowEffect::FanOut) {
            out.rows = of_input.or(blamed);
        } else if grouped {
            // Where rows cannot be told apart, there are fewer groups.
            out.rows = of_input.or(ungrouped);
        }
        out
    }

    /// The keys that readers of a node miss where they get the rows of its input, and that have no default.
    fn missing_of_input(&self, draft: &Draft, signature: Signature, sure: &[Keys]) -> Vec<Key> {
        let Some(input) = draft.inputs.first().copied().flatten() else { return Vec::new() };
        let mut missing = self.written(draft, signature, Keys::everything);
        missing.remove(&sure[input as usize]);
        missing.list(self.registry).filter(|key| *key != Key::ID && self.has_no_default(*key)).collect()
    }

    fn has_no_default(&self, key: Key) -> bool {
        !matches!(self.registry.key(key).absent(), Absent::Default(_))
    }

    fn report_no_value(&self, at: NodeIx, draft: &Draft, field: &str, missing: &[Key], found: &mut Diagnostics) {
        let refused = missing.iter().copied().filter(|key| self.registry.key(*key).absent() == Absent::Refused);
        let names = self.names(refused);
        if !names.is_empty() {
            let message = format!(
                "with the {field} of {}, rows have no {names}: not nullable, and without a default",
                self.node(at)
            );
            let wrong = Diagnostic::new(Code::LeavesNoValue, format!("/nodes/{at}/{field}"), message);
            found.push(wrong.source(draft.source.clone()));
        }
    }

    /// Reports a node that drops rows by what is left out.
    fn report_drops(
        &self,
        at: NodeIx,
        draft: &Draft,
        signature: Signature,
        left_out: &[LeftOut],
        found: &mut Diagnostics,
    ) {
        const DEFAULT: &str = "give the key a default in the registry, or ";
        if draft.rows() != Some(RowEffect::Fewer) {
            return;
        }
        let mut report = |param: &str, what: String, way_out: &str, blamed: NodeIx| {
            let blamed_draft = &self.drafts[blamed as usize];
            let mut fields: Vec<&str> = blamed_draft.substitutes.each().map(|(field, _)| field).collect();
            if fields.is_empty() {
                fields.push("reserves");
            }
            let message = format!(
                "{} drops rows by {what}, which the {} of {} may leave out",
                self.node(at),
                fields.join(" or "),
                self.node(blamed)
            );
            let opened = Diagnostic::new(Code::OpensFilter, format!("/nodes/{at}/params/{param}"), message);
            let help = format!(
                "{way_out}write in fail_open of {} why rows may pass",
                quoted(&self.wire.nodes[blamed as usize].node_id)
            );
            found.push(opened.help(help).source(draft.source.clone()));
        };
        let first = draft.inputs.first().copied().flatten().map(|first| &left_out[first as usize]);
        for (param, key) in
            reads(draft, signature).flat_map(|(param, keys)| keys.into_iter().map(move |key| (param, key)))
        {
            if let Some(blamed) = first.and_then(|first| first.keys.get(&key)) {
                report(param.name, format!("{:?}", self.registry.key(key).name), DEFAULT, *blamed);
            }
        }
        let Some((rows, right)) = flow::right_input(draft, signature).zip(right_of(draft, signature)) else { return };
        let (rows, right) = (rows.0, &left_out[right as usize]);
        if let Some(blamed) = right.rows {
            report(rows.name, format!("the rows of {}", rows.name), "", blamed);
        }
        for (param, keys) in right_reads(draft, signature) {
            for key in keys {
                if let Some(blamed) = right.keys.get(&key) {
                    let what = format!("{:?} of {}", self.registry.key(key).name, rows.name);
                    report(param.name, what, DEFAULT, *blamed);
                }
            }
        }
    }

    fn node(&self, at: NodeIx) -> String {
        let node = &self.wire.nodes[at as usize];
        format!("{} {}", node.op.as_deref().unwrap_or_default(), quoted(&node.node_id))
    }

    /// The names of the first few keys.
    fn names(&self, keys: impl Iterator<Item = Key>) -> String {
        const SHOWN: usize = 5;
        let names: Vec<String> = keys.take(SHOWN + 1).map(|key| format!("{:?}", self.registry.key(key).name)).collect();
        let more = if names.len() > SHOWN { ", …" } else { "" };
        names[..names.len().min(SHOWN)].join(", ") + more
    }
}

/// The node whose rows a substitute gives.
fn rows_of(draft: &Draft, substitute: Substitute) -> Option<NodeIx> {
    match substitute {
        Substitute::NoRows => None,
        Substitute::FirstInput => draft.inputs.first().copied().flatten(),
        Substitute::Node(node) => Some(node),
    }
}

/// The node that a node-valued parameter names.
fn right_of(draft: &Draft, signature: Signature) -> Option<NodeIx> {
    right_input(draft, signature).and_then(|(_, at)| draft.inputs.get(at).copied().flatten())
}
