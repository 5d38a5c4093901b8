//! What is JSON in a capture: the state of a run and its weather, written and read.

use super::{CapturedArms, RunState};
use crate::answer::table_digests;
use rankd_engine::codes;
use rankd_engine::degraded::Reason;
use rankd_engine::recorded::{Ending, NodeEnd, RunFacts, Weather};
use rankd_engine::seed::Seed;
use rankd_engine::{ErrorCode, Linked};
use rankd_plan::Registry;
use rankd_plan::json::{Fault, Kind, Number, Reader, Writer};
use std::time::Duration;

const DEPTH_MAX: usize = 8;

impl RunState {
    /// Of a run of this plan.
    pub fn of(facts: &RunFacts, plan: &Linked, registry: &Registry) -> RunState {
        let dials = plan.dials.iter().zip(&facts.dials).map(|(dial, value)| (dial.name.clone(), *value)).collect();
        let mut models: Vec<(String, String)> = facts
            .models
            .iter()
            .flat_map(|versions| {
                let uses = plan.models().uses().iter();
                uses.filter_map(|of| Some((of.name.to_string(), versions.get(of.model)?.sha256().to_owned())))
            })
            .collect();
        models.sort_unstable();
        models.dedup();
        let versions = facts.tables.as_deref();
        let tables = versions.into_iter().flat_map(|versions| table_digests(plan, registry, versions));
        let tables = tables.map(|(name, sha256)| (name.to_owned(), sha256.to_owned())).collect();
        let arms = facts.arms.as_ref().map(|arms| CapturedArms {
            experiments_sha256: arms.experiments().sha256().to_string(),
            taken: arms.names().map(|(experiment, arm)| (experiment.to_owned(), arm.to_owned())).collect(),
            is_forced: arms.is_forced,
        });
        let RunFacts { now_ms, seed, pressure, .. } = facts;
        RunState { now_ms: *now_ms, seed: seed.clone(), pressure: *pressure, dials, models, tables, arms }
    }

    pub(super) fn to_json(&self) -> String {
        let mut writer = Writer::new();
        writer.object(|w| {
            if let Some(now_ms) = self.now_ms {
                w.field("now_ms").int(now_ms);
            }
            match &self.seed {
                None => {}
                Some(Seed::Int(number)) => {
                    w.field("seed").int(*number);
                }
                Some(Seed::Text(text)) => {
                    w.field("seed").string(text);
                }
            }
            w.field("pressure").int(self.pressure.into());
            w.field("dials").object(|w| {
                for (name, value) in &self.dials {
                    w.field(name).int(*value);
                }
            });
            write_names(&self.models, w.field("models"));
            write_names(&self.tables, w.field("tables"));
            if let Some(CapturedArms { experiments_sha256, taken, is_forced }) = &self.arms {
                write_names(taken, w.field("arms"));
                w.field("forced").bool(*is_forced).field("experiments_sha256").string(experiments_sha256);
            }
        });
        writer.finish()
    }

    /// `None` where it is not what [`RunState::to_json`] writes.
    pub(super) fn from_json(text: &str) -> Option<RunState> {
        let mut state = RunState::default();
        each_field(text, |reader, name| {
            match name {
                "now_ms" => state.now_ms = Some(int(reader)?),
                "seed" => {
                    state.seed = Some(match reader.peek()? {
                        Kind::String => Seed::Text(reader.string()?.as_ref().into()),
                        _ => Seed::Int(int(reader)?),
                    });
                }
                "pressure" => state.pressure = u8::try_from(int(reader)?).unwrap_or(u8::MAX),
                "dials" => {
                    let mut fields = reader.open_object()?;
                    while let Some((name, _)) = reader.field(&mut fields)? {
                        state.dials.push((name.into_owned(), int(reader)?));
                    }
                }
                "models" => state.models = names(reader)?,
                "tables" => state.tables = names(reader)?,
                "arms" => state.arms.get_or_insert_default().taken = names(reader)?,
                "forced" => state.arms.get_or_insert_default().is_forced = reader.bool()?,
                "experiments_sha256" => {
                    state.arms.get_or_insert_default().experiments_sha256 = reader.string()?.into_owned();
                }
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        Some(state)
    }
}

fn write_names(names: &[(String, String)], w: &mut Writer) {
    w.object(|w| {
        for (name, of) in names {
            w.field(name).string(of);
        }
    });
}

fn names(reader: &mut Reader<'_>) -> Result<Vec<(String, String)>, Fault> {
    let (mut names, mut fields) = (Vec::new(), reader.open_object()?);
    while let Some((name, _)) = reader.field(&mut fields)? {
        names.push((name.into_owned(), reader.string()?.into_owned()));
    }
    Ok(names)
}

pub(super) fn weather_to_json(weather: &Weather) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("nodes").array(|w| {
            for NodeEnd { node, how, after } in &weather.ends {
                w.object(|w| {
                    w.field("node").string(node);
                    match how {
                        Ending::Failed { code, message, reason } => {
                            w.field("end").string("failed");
                            w.field("code").string(code.id);
                            if let Some(reason) = reason {
                                w.field("reason").string(reason.name());
                            }
                            w.field("message").string(message);
                        }
                        Ending::Cut { picked } => {
                            w.field("end").string("cut").field("picked").int(*picked as i64);
                        }
                    }
                    // To the nanosecond: what is shown of it is rounded in one place only.
                    w.field("after_ns").int(i64::try_from(after.as_nanos()).unwrap_or(i64::MAX));
                });
            }
        });
        w.field("ended_run").bool(weather.ended_run);
        w.field("short").array(|w| {
            for node in &weather.short {
                w.string(node);
            }
        });
    });
    writer.finish()
}

/// `None` where it is not what [`weather_to_json`] writes, or has a code that this version does not know.
pub(super) fn weather_from_json(text: &str) -> Option<Weather> {
    let (mut weather, mut is_known) = (Weather::default(), true);
    each_field(text, |reader, name| {
        match name {
            "nodes" => {
                let mut items = reader.open_array()?;
                while reader.item(&mut items)? {
                    match node_end(reader)? {
                        Some(end) => weather.ends.push(end),
                        None => is_known = false,
                    }
                }
            }
            "ended_run" => weather.ended_run = reader.bool()?,
            "short" => {
                let mut items = reader.open_array()?;
                while reader.item(&mut items)? {
                    weather.short.push(reader.string()?.into_owned());
                }
            }
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    is_known.then_some(weather)
}

fn node_end(reader: &mut Reader<'_>) -> Result<Option<NodeEnd>, Fault> {
    let (mut node, mut end, mut message) = (String::new(), String::new(), String::new());
    let (mut code, mut reason, mut picked, mut after_ns) = (None, None, 0, 0);
    let mut fields = reader.open_object()?;
    while let Some((name, _)) = reader.field(&mut fields)? {
        match &*name {
            "node" => node = reader.string()?.into_owned(),
            "end" => end = reader.string()?.into_owned(),
            "message" => message = reader.string()?.into_owned(),
            "code" => code = code_named(&reader.string()?),
            "reason" => {
                let name = reader.string()?;
                reason = Reason::ALL.iter().copied().find(|reason| reason.name() == name);
            }
            "picked" => picked = usize::try_from(int(reader)?).unwrap_or(0),
            "after_ns" => after_ns = u64::try_from(int(reader)?).unwrap_or(0),
            _ => reader.skip()?,
        }
    }
    let how = match (&*end, code) {
        ("failed", Some(code)) => Ending::Failed { code, message, reason },
        ("cut", _) => Ending::Cut { picked },
        _ => return Ok(None),
    };
    Ok(Some(NodeEnd { node, how, after: Duration::from_nanos(after_ns) }))
}

/// The code with this number.
pub(super) fn code_named(id: &str) -> Option<&'static ErrorCode> {
    codes::ALL.iter().copied().find(|code| code.id == id)
}

fn int(reader: &mut Reader<'_>) -> Result<i64, Fault> {
    let at = reader.at();
    match reader.number()? {
        Number::Int(value) => Ok(value),
        Number::Float(_) | Number::OutOfRange => Err(Fault { at, message: "an int is expected here" }),
    }
}

fn each_field(text: &str, mut with: impl FnMut(&mut Reader<'_>, &str) -> Result<(), Fault>) -> Option<()> {
    let mut reader = Reader::new(text, DEPTH_MAX);
    let mut fields = reader.open_object().ok()?;
    while let Some((name, _)) = reader.field(&mut fields).ok()? {
        with(&mut reader, &name).ok()?;
    }
    reader.end().ok()
}
