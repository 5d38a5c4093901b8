//! `rankd plans rollback`, `pin` and `unpin`: another version of a plan in a server that runs, over HTTP to its `--admin` address.

use crate::cli::ask_server::{ServerAnswer, ask, split_url};
use crate::cli::command_error::CommandError;
use crate::cli::{DONE, FAILED, WRONG, say};
use clap::{Args, Subcommand};
use rankd_plan::json::{Reader, Writer};
use std::time::Duration;

/// How deep the answers of a server are.
const DEPTH_MAX: usize = 64;

#[derive(Subcommand)]
pub(crate) enum PlanSwitch {
    /// Go back to the version before, or to a named one, until the plan's file changes
    #[command(after_help = "Example: rankd plans rollback feed --url http://127.0.0.1:9090")]
    Rollback(RollbackArgs),
    /// Stay at a version, whatever the plan's file has, until it is unpinned or the server ends
    #[command(after_help = "Example: rankd plans pin feed 3f2a9c01 --url http://127.0.0.1:9090")]
    Pin(PinArgs),
    /// Serve the newest good version of a plan again
    #[command(after_help = "Example: rankd plans unpin feed --url http://127.0.0.1:9090")]
    Unpin(UnpinArgs),
}

#[derive(Args)]
pub(crate) struct RollbackArgs {
    /// The plan
    name: String,
    /// The version to go back to, as its digest or at least 8 digits of it [default: the one before]
    sha256: Option<String>,
    #[command(flatten)]
    server: AdminServer,
}

#[derive(Args)]
pub(crate) struct PinArgs {
    /// The plan
    name: String,
    /// The version, as its digest or at least 8 digits of it
    sha256: String,
    #[command(flatten)]
    server: AdminServer,
}

#[derive(Args)]
pub(crate) struct UnpinArgs {
    /// The plan
    name: String,
    #[command(flatten)]
    server: AdminServer,
}

/// The server that is asked.
#[derive(Args)]
struct AdminServer {
    /// The address for operators of a server that was started with --allow_rollback
    #[arg(long, value_name = "URL")]
    url: String,
    /// How long each step of the request may take, in ms
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    timeout_ms: u64,
}

pub(crate) fn run(switch: &PlanSwitch) -> u8 {
    let (page, name, sha256, server) = match switch {
        PlanSwitch::Rollback(RollbackArgs { name, sha256, server }) => ("rollback", name, sha256.as_deref(), server),
        PlanSwitch::Pin(PinArgs { name, sha256, server }) => ("pin", name, Some(sha256.as_str()), server),
        PlanSwitch::Unpin(UnpinArgs { name, server }) => ("pin", name, None, server),
    };
    try_run(page, name, sha256, server).unwrap_or_else(|error| {
        error.report();
        WRONG
    })
}

fn try_run(page: &str, name: &str, sha256: Option<&str>, server: &AdminServer) -> Result<u8, CommandError> {
    if !rankd_edge::library::is_name(name) {
        return Err(CommandError::Wrong(format!("{name:?} is not the name of a plan")));
    }
    let (address, path) = split_url(&server.url)?;
    if !path.is_empty() {
        let message = format!("--url must be the address alone, such as http://{address}");
        return Err(CommandError::Wrong(message));
    }
    let mut body = Writer::new();
    body.object(|w| match sha256 {
        Some(sha256) => drop(w.field("sha256").string(sha256)),
        None => drop(w.field("sha256").null()),
    });
    let patience = Duration::from_millis(server.timeout_ms);
    let answer = ask(&address, "POST", &format!("/{page}/{name}"), &body.finish(), patience);
    let ServerAnswer { status, body } = answer.map_err(CommandError::with(&server.url))?;
    if status == 200 {
        say::to_programs(&body);
        return Ok(DONE);
    }
    let message = message_of(&body).unwrap_or_else(|| format!("the server answered with status {status}"));
    say::to_people(&format!("error: {message}"));
    Ok(FAILED)
}

/// What an error object says.
fn message_of(body: &str) -> Option<String> {
    let (mut reader, mut said) = (Reader::new(body, DEPTH_MAX), None);
    let mut fields = reader.open_object().ok()?;
    while let Some((name, _)) = reader.field(&mut fields).ok()? {
        if name != "error" {
            reader.skip().ok()?;
            continue;
        }
        let (mut code, mut message) = (String::new(), String::new());
        let mut inner = reader.open_object().ok()?;
        while let Some((name, _)) = reader.field(&mut inner).ok()? {
            match &*name {
                "code" => code = reader.string().ok()?.into_owned(),
                "message" => message = reader.string().ok()?.into_owned(),
                _ => reader.skip().ok()?,
            }
        }
        said = Some(format!("{code} {message}"));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_object_is_told_in_a_line() {
        let body = r#"{"request_id":"a","error":{"code":"E132","kind":"bad_request","retry":false,"message":"no such version"}}"#;
        assert_eq!(message_of(body).as_deref(), Some("E132 no such version"));
        assert_eq!((message_of("<html>"), message_of("{}")), (None, None));
    }
}
