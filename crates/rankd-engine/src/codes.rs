//! The numbered codes of failed requests: one row a code. Everything else about a code derives from its row: the kind and `retry` in
//! an answer, the HTTP status (from the kind), `rankd code` and `docs/errors.md`.
//!
//! A number is never used again. Codes that only the server raises are in this table as well, so that no number has two meanings.
//! A task of another program may bring rows of its own: an [`ErrorCode`] constant, with a number that does not start with E.
//!
//! E1 the request · E2 the plan · E3 time limits · E4 endpoints · E5 tasks and the console · E6 overload · E7 cancelled · E9 bugs.

use std::fmt;

/// The class of a failure, which callers act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    BadRequest,
    UnknownPlan,
    InvalidPlan,
    Timeout,
    Upstream,
    Task,
    Overloaded,
    Cancelled,
    Bug,
}

impl ErrorKind {
    pub const ALL: &[ErrorKind] = &[
        ErrorKind::BadRequest,
        ErrorKind::UnknownPlan,
        ErrorKind::InvalidPlan,
        ErrorKind::Timeout,
        ErrorKind::Upstream,
        ErrorKind::Task,
        ErrorKind::Overloaded,
        ErrorKind::Cancelled,
        ErrorKind::Bug,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::BadRequest => "bad_request",
            ErrorKind::UnknownPlan => "unknown_plan",
            ErrorKind::InvalidPlan => "invalid_plan",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Upstream => "upstream",
            ErrorKind::Task => "task",
            ErrorKind::Overloaded => "overloaded",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::Bug => "bug",
        }
    }
}

/// Whether a failure passes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The same plan and request may succeed a moment later.
    Weather,
    /// They will not succeed until somebody changes something.
    Mistake,
}

impl Cause {
    pub fn name(self) -> &'static str {
        match self {
            Cause::Weather => "weather",
            Cause::Mistake => "mistake",
        }
    }
}

/// A row of the table.
#[derive(Debug, Eq)]
pub struct ErrorCode {
    /// The stable number.
    pub id: &'static str,
    /// The name of its constant.
    pub name: &'static str,
    pub kind: ErrorKind,
    pub cause: Cause,
    /// Whether callers should send the same request again.
    pub retry: bool,
    /// What it means, in one sentence without a full stop.
    pub about: &'static str,
    /// What to do.
    pub help: &'static str,
    /// A message with this code.
    pub example: &'static str,
}

impl PartialEq for ErrorCode {
    /// No two rows have the same number.
    fn eq(&self, other: &ErrorCode) -> bool {
        self.id == other.id
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

macro_rules! codes {
    ($($id:ident $name:ident $kind:ident $cause:ident $retry:literal $about:literal $help:literal $example:literal)*) => {
        $(
            #[doc = $about]
            pub const $name: &ErrorCode = &ErrorCode {
                id: stringify!($id),
                name: stringify!($name),
                kind: ErrorKind::$kind,
                cause: Cause::$cause,
                retry: $retry,
                about: $about,
                help: $help,
                example: $example,
            };
        )*

        /// Every code, by number.
        pub const ALL: &[&ErrorCode] = &[$($name),*];
    };
}

codes! {
    E101 NOT_A_REQUEST BadRequest Mistake false
        "the request is not a JSON object, or a name appears in it twice"
        "Send one JSON object in UTF-8, such as {\"user_id\": 1}, on one line for `rankd run`. The message names the byte where reading stopped."
        "this is not a request: expected an object (byte 0)"
    E102 REQUEST_TOO_LARGE BadRequest Mistake false
        "the request has more bytes than a request may have"
        "Send fewer candidates, or let the plan read them from a store."
        "a request has at most 1048576 bytes"
    E103 UNKNOWN_FIELD BadRequest Mistake false
        "the request has a field that requests do not have"
        "Correct the name; the message has the nearest one. Parameters of the registry belong in `params`."
        "there is no field \"parms\"; did you mean \"params\"?"
    E104 MISSING_FIELD BadRequest Mistake false
        "a field that every request, or every candidate, needs is missing"
        "Add the field that the message names."
        "the field \"user_id\" is missing"
    E105 WRONG_VALUE BadRequest Mistake false
        "a value in the request is of the wrong type or out of range"
        "Send what the message asks for. The types of keys and parameters are in the registry."
        "the parameter \"weight\" must be of type float"
    E106 WRONG_PARAM BadRequest Mistake false
        "the request sets a parameter that does not exist or that a request may not set"
        "Correct the name, or add the parameter to registry/params.toml; `allow_write` and `status` there say whether requests may set it."
        "there is no parameter \"wieght\"; did you mean \"weight\"?"
    E107 WRONG_KEY BadRequest Mistake false
        "the request names a key that does not exist or that may not be used"
        "Correct the name in `output_keys` or in a candidate, or add the key to registry/keys.toml."
        "there is no key \"scroe\"; did you mean \"score\"?"
    E108 OTHER_PLAN BadRequest Mistake false
        "the request names another plan than the one it was sent to"
        "Leave out `plan`, or send the request to the plan that it names."
        "the request is for plan \"other\", but it was sent to plan \"feed\""
    E109 NO_PLAN_NAMED BadRequest Mistake false
        "the request does not say which plan it is for"
        "Name the plan in the field `plan`, or send the request to /rank/{plan}."
        "which plan? Name it in \"plan\", or use /rank/{plan}"
    E110 MISSING_PARAM BadRequest Mistake false
        "the request leaves out a parameter that the plan needs"
        "Set the parameter in `params`, or give it a default, or make it nullable, in registry/params.toml."
        "the plan \"feed\" needs the parameter \"weight\": it is not nullable and has no default"
    E111 TOO_MANY_CELLS BadRequest Mistake false
        "the candidates of the request, as a table of rows and keys, are too large"
        "Send fewer candidates, or fewer different keys: a key that one candidate has takes a cell in all of them."
        "candidates have more than 4194304 cells: that is rows, times keys that any row has"
    E112 CONFLICTING_PARAMS BadRequest Mistake false
        "`params` and its old spelling `param_overrides` set the same parameter to different values"
        "Use `params` alone."
        "\"params\" and \"param_overrides\" set the parameter \"weight\" to different values: use one of them"
    E113 WRONG_DIAL BadRequest Mistake false
        "the request sets a dial that the plan does not have, or beyond its ends"
        "Correct the name, which is that of the node and its parameter, or the value: a dial goes from its first value down to its `min`."
        "the dial \"n2.fanout\" goes from 100 to 20, not to 200"
    E114 WRONG_CURSOR BadRequest Mistake false
        "the cursor of the request is not one that this plan gave this user"
        "Send the `cursor` of the last answer as it is, to the same plan and for the same user; leave it out for the first page."
        "the parameter \"cursor\" is the cursor of another user"
    E119 ARMS_NOT_ALLOWED BadRequest Mistake false
        "the request chooses arms of experiments where requests may not do that"
        "Leave out `arms`, or start the program with --force_arms, which is meant for tests and not for the public."
        "a request may not choose its arms here; --force_arms allows it"
    E120 UNKNOWN_ARM BadRequest Mistake false
        "the request names an experiment, or an arm of one, that does not exist"
        "Correct the name; `rankd experiments` lists the experiments and their arms."
        "there is no experiment \"ranking_wieght\"; did you mean \"ranking_weight\"?"

    E121 UNKNOWN_PATH BadRequest Mistake false
        "the server has no such path on this listener"
        "GET /openapi.json lists the paths. With --admin, some are served on that address alone."
        "there is no path \"/rnak\" here"
    E122 WRONG_METHOD BadRequest Mistake false
        "the path exists, but not with this HTTP method"
        "Use the method that the header `allow` of the answer names."
        "\"/rank\" takes POST, not \"GET\""
    E123 NOT_JSON BadRequest Mistake false
        "the body is not declared as JSON"
        "Send the header `content-type: application/json`; or start the server with --lenient, which reads a body without a type as JSON."
        "the header content-type is missing: a request is application/json"
    E124 BODY_TOO_SLOW BadRequest Weather true
        "the body did not arrive in time"
        "Send it again. If it happens often, look at the network, or raise --body_ms."
        "the body did not arrive within 10000 ms"
    E125 TOO_LARGE_FOR_ARROW BadRequest Mistake false
        "a column has more text than an Arrow stream can hold"
        "Ask for JSON, for fewer rows, or leave the key out of `output_keys`."
        "\"title\" has more text than an Arrow stream can hold: ask for application/json"
    E126 BROKEN_BODY BadRequest Mistake false
        "the chunks of the body are malformed"
        "Let an HTTP library write the body, or send `content-length` instead of chunks."
        "the body's chunks cannot be read: Invalid chunk size line: Invalid Size"
    E127 BAD_HOST BadRequest Mistake false
        "the header `host` is missing, repeated or malformed"
        "Send exactly one `host` header that names the server."
        "the header host is missing"
    E128 OTHER_HOST BadRequest Mistake false
        "the server does not answer for this host"
        "Send the request to a host that the server answers for, or list this one in --hosts."
        "this server does not answer for the host \"rank.example.com\"; --hosts sets which it answers for"
    E129 ENCODED_BODY BadRequest Mistake false
        "the body is compressed"
        "Send it uncompressed, without the header `content-encoding`."
        "the body has the content-encoding \"gzip\", which is not supported: send it uncompressed"
    E130 CONFLICTING_ARMS BadRequest Mistake false
        "the request chooses arms that cannot go together, or sets a parameter that a chosen arm overrides"
        "Choose one experiment of a layer, and either the arm or the parameter."
        "the request sets a parameter that the experiment \"ranking_weight\" overrides: drop one of them"
    E131 ROLLBACK_NOT_ALLOWED BadRequest Mistake false
        "the server does not let operators roll plans back or pin them"
        "Start it with --allow_rollback and --admin ADDR, and send the request to that address."
        "plans cannot be rolled back or pinned here: start the server with --allow_rollback"
    E132 UNKNOWN_VERSION BadRequest Mistake false
        "the server keeps no version of the plan with this digest"
        "GET /plans/{plan} lists the versions with their digests; `kept` says which can be served again. To serve an older one, put it back into the plan folder."
        "the plan \"feed\" has no version that begins with \"0123abcd\""
    E133 NO_EARLIER_VERSION BadRequest Mistake false
        "there is no earlier version of the plan to go back to"
        "GET /plans/{plan} lists the versions. A process knows only those that it has served itself, and versions that were rolled back are passed over."
        "the plan \"feed\" has no earlier version to go back to"
    E134 VERSION_NOT_USABLE InvalidPlan Mistake false
        "an earlier version of the plan does not build with the registry, tables and models of today"
        "The answer has its `diagnostics`. Choose another version, or undo the change of the registry that it does not fit."
        "the version 0123abcd4567 of the plan \"feed\" cannot be served: P302 there is no key \"likes\""
    E135 PLAN_PINNED BadRequest Mistake false
        "the plan is pinned to a version, so it cannot be rolled back"
        "Pin another version, or unpin the plan first: POST /pin/{plan} with {\"sha256\": null}."
        "the plan \"feed\" is pinned to 0123abcd4567: pin another version, or unpin it first"

    E201 UNKNOWN_PLAN UnknownPlan Mistake false
        "there is no plan of this name"
        "Correct the name, or add the plan to the folder of --plan_dir; GET /plans and `rankd plans` list the plans."
        "there is no plan \"complex_dog\"; did you mean \"complex_dag\"?"
    E202 NO_GOOD_VERSION InvalidPlan Mistake false
        "the plan exists, but no version of it could be loaded"
        "`rankd check` and GET /plans/{plan} report what is wrong with it."
        "the plan \"feed\" cannot run: plans/feed.plan.ts:4:9: P301 there is no task \"srot\""

    E301 REQUEST_DEADLINE Timeout Weather true
        "the request's deadline passed before there was an answer"
        "Look at the trace for the node that took the time. Raise --deadline_ms or the request's `deadline_ms`, or make the plan do less."
        "request deadline of 20 ms exceeded"
    E302 NODE_TIMEOUT Timeout Weather true
        "a node took longer than a node may take"
        "Look at what the node waits for. Raise its `timeout_ms`, --node_timeout_ms or the request's `node_timeout_ms`."
        "node timeout of 50 ms exceeded"
    E303 TOO_LATE_TO_START Timeout Weather true
        "the request's deadline passed before a node could start"
        "What came before took too long: look at the trace. Raise the deadline, or make the plan do less."
        "deadline before start: the request's 20 ms had passed"
    E304 LEARNED_LIMIT Timeout Weather true
        "a node with a fallback took longer than the request's deadline leaves it, by what nodes after it usually take"
        "Look at what the node waits for. Raise the deadline, or give the node less to do."
        "learned limit of 61.5 ms exceeded"

    E401 UNREACHABLE Upstream Weather true
        "an endpoint cannot be reached, or the connection to it was lost"
        "`rankd check --connect` tries every endpoint. The log has the address and the cause."
        "the endpoint \"redis_default\" cannot be reached"
    E402 WRONG_STORED_TYPE Upstream Mistake false
        "a key in the store holds a different type than the task reads"
        "Correct what is stored under the key, or the prefix or endpoint in the plan: fan-outs read lists, `viewer` and `hydrate` read hashes."
        "the key follow:1 holds a different type than expected"
    E403 INJECTED_READ Upstream Weather true
        "the embedded store failed a read because its endpoint says so"
        "Remove `fail_every` from the endpoint's faults in registry/endpoints.ENV.toml."
        "LRANGE failed, as configured for the endpoint"
    E404 NO_ANSWER Upstream Weather true
        "an endpoint did not answer in time"
        "Look at the load of the store and at the network, or raise the endpoint's `request_timeout_ms`."
        "the endpoint \"redis_default\" did not answer within 50 ms"
    E411 STORE_LOADING Upstream Weather true
        "the Redis server is still reading its data (LOADING)"
        "Wait until it has started."
        "the endpoint \"redis_default\" is still loading its data"
    E412 STORE_BUSY Upstream Weather true
        "the Redis server is busy running a script (BUSY)"
        "Stop the script (SCRIPT KILL), and keep long scripts off this server."
        "the endpoint \"redis_default\" is busy running a script"
    E413 STORE_READ_ONLY Upstream Weather true
        "the Redis server is a read-only replica (READONLY)"
        "Point the endpoint at the master, or wait until the failover is over."
        "the endpoint \"redis_default\" is read-only"
    E414 MASTER_DOWN Upstream Weather true
        "the Redis server is a replica that has lost its master (MASTERDOWN)"
        "Restore the master, or promote a replica."
        "the endpoint \"redis_default\" has lost its master"
    E415 CLUSTER_DOWN Upstream Weather true
        "the Redis cluster does not serve all of its slots (CLUSTERDOWN)"
        "Bring back the nodes that are missing; `redis-cli --cluster check` names them."
        "the endpoint \"redis_cluster\" is a cluster that is down"
    E416 KEY_MOVED Upstream Weather true
        "the cluster keeps a key on a node that could not be found (MOVED, ASK)"
        "It passes when the slots have settled. If it does not, compare what the nodes say of the cluster (`redis-cli cluster slots`)."
        "the endpoint \"redis_cluster\" keeps this key on a node that was not found"
    E417 ACCESS_DENIED Upstream Weather false
        "the Redis server denies access (NOAUTH, WRONGPASS, NOPERM)"
        "Correct the user and password in the endpoint's address, or allow the user the commands and keys that the plan reads."
        "the endpoint \"redis_default\" denies access: the password is missing or wrong"
    E418 TOO_MANY_CLIENTS Upstream Weather true
        "the Redis server accepts no more clients"
        "Raise its `maxclients`, or lower the endpoint's `connections` or the number of loops."
        "the endpoint \"redis_default\" has no room for another client"
    E419 STORE_ERROR Upstream Mistake false
        "the Redis server answered with an error that has no code of its own"
        "The log has what the server said."
        "the endpoint \"redis_default\" answered with an error"
    E420 KEY_MOVING Upstream Weather true
        "the cluster is just moving a key to another node (TRYAGAIN)"
        "Try again; it passes when the slot has been moved."
        "the endpoint \"redis_cluster\" is moving this key; try again"
    E421 STORED_TOO_LARGE Upstream Mistake false
        "what is stored under a key, or all that a step reads, is more than is read"
        "Read fewer rows or only some fields of the hash (`hydrate`), or store less under one key."
        "the hash user:1 has more than 100000 fields: read only some"
    E422 UNKNOWN_COMMAND Upstream Mistake false
        "the Redis server does not know a command that a read needs"
        "`from: \"bf\"` needs a server with Bloom filters (BF.MEXISTS: Redis 8, or the module RedisBloom), `from: \"set\"` and `\"zset\"` of `exclude` and `only` need Redis 6.2 (SMISMEMBER, ZMSCORE). The log has what the server said."
        "the endpoint \"redis_default\" does not know the command that this read needs"
    E423 NOT_RECORDED Upstream Mistake false
        "a replayed run reads something that the recorded run did not read"
        "The plan reads other keys, more fields or longer lists than the one that was captured. Capture requests of that plan, or compare the two plans on live data with `rankd diff`."
        "the endpoint \"redis_default\": the key user:7 was not recorded"
    E431 SERVICE_FAILED Upstream Weather true
        "an HTTP service answered that it cannot answer now (status 408, 425, 429 or 5xx)"
        "Look at the service; the log has what it said. After several in a row, further calls fail at once for up to 250 ms."
        "the endpoint \"recommender\" answered with status 503"
    E432 SERVICE_REFUSED Task Mistake false
        "an HTTP service refused what it was asked (another 4xx), or sent the caller elsewhere (3xx)"
        "Correct the path, the method or the body in the plan, or the url or the headers of the endpoint. Redirects are not followed. The log has what the service said."
        "the endpoint \"recommender\" answered with status 401"
    E433 ANSWER_TOO_LARGE Upstream Mistake false
        "the answer of an HTTP service has more bytes than its endpoint allows"
        "Ask for less, lower `batch_max`, or raise the endpoint's `bytes_max`."
        "the endpoint \"recommender\" answered with more than 8388608 bytes"
    E434 ANSWER_NOT_JSON Upstream Mistake false
        "the answer of an HTTP service is not JSON, or is compressed"
        "Let the service answer with JSON in UTF-8, uncompressed. The message names the byte where reading stopped."
        "the answer of the endpoint \"recommender\" is not JSON: expected a value (byte 0)"
    E435 WRONG_ANSWER Upstream Mistake false
        "the answer of an HTTP service is JSON, but has no rows where the plan says that they are"
        "Correct `rows` in the plan: it is a JSON pointer to the array of the answer, such as /items, or empty where the answer is the array."
        "the answer of the endpoint \"recommender\" has no array at \"/items\""
    E436 BAD_CALL_PATH Task Mistake false
        "the path of a call is too long, or a value in it cannot be part of a path"
        "Put long values into the body of the call. A value that is . or .. cannot stand in a path."
        "the endpoint \"recommender\": the path of a call has more than 8192 bytes, or characters that paths do not have"
    E437 TOO_MANY_CALLS Task Mistake false
        "a step needs more calls of an HTTP service than a step may make"
        "Name the row in the body of a POST instead of in the path, raise `batch_max`, or fetch for fewer rows."
        "the rows need more than 1000 calls of the endpoint \"recommender\""

    E501 INT_OVERFLOW Task Mistake false
        "an integer in an expression does not fit 64 bits"
        "Compute in floats (`Key.a * 1.0`), or `clamp` the operands first. The message names the row."
        "an int overflows 64 bits at row id 2"
    E502 NOT_FINITE Task Mistake false
        "the result of an expression is infinite or not a number, which no key can hold"
        "Guard the operation, for example with `clamp`, `max` or `if`: division by zero and the logarithm of zero are the usual causes."
        "the result is inf at row id 2"
    E503 BAD_PATTERN BadRequest Mistake false
        "a regular expression that came with the request cannot be used"
        "Correct the pattern in the request's parameter."
        "the regular expression in a parameter cannot be used: unclosed group"
    E504 INJECTED_FAILURE Task Mistake false
        "a task failed because the plan says so"
        "Remove `fail_after_sleep` from the `sleep` node: it exists to try out failures."
        "configured to fail after its sleep"
    E505 REPEATED_CANDIDATE BadRequest Mistake false
        "two candidates of the request have the same id"
        "Send each candidate once."
        "the candidate id 9 appears twice"
    E506 NO_VALUE Task Mistake false
        "a row has no value for a key that is not nullable and has no default"
        "Store a value, or give the key a `default`, or make it nullable, in registry/keys.toml."
        "the key \"topic\" has no value at row id 3: it is not nullable and has no default"
    E507 TOO_MANY_IDS Task Mistake false
        "the run has met more distinct ids, or longer ones, than a run may keep"
        "Read fewer rows: lower `fanout`, or filter before fanning out."
        "the run has met more ids than it may keep"
    E508 SEVERAL_ROWS Task Mistake false
        "a join without `on` found more than one row to take columns from"
        "Say with `on` which rows belong together, or keep one row: `rhs: rows.take({ count: 1 })`."
        "rhs has 3 rows: without `on`, join takes the columns of one row"
    E509 KEY_TOO_LONG Task Mistake false
        "a key that a template gives for a row is longer than keys may be"
        "Look at what the template's key or parameter holds: it has to be short, such as an id. A key has at most 1024 bytes."
        "the key that is read for row id 7 has 4100 bytes, which is more than the limit of 1024"
    E510 TEXT_TOO_LONG Task Mistake false
        "an expression makes a text that is too long, or too many texts"
        "Make fewer or shorter texts: an operation such as `append` may make texts of up to 1 MiB, an expression 64 MiB of distinct texts."
        "a text is longer than 1048576 bytes at row id 2"
    E511 TOO_MANY_SEARCHES Task Mistake false
        "a step has more rows to search a table for than a step may have"
        "Keep fewer rows before `nearest`, for example with `take({ count: 16 })`, or search once for a vector that stands for all of them."
        "17 rows are searched for, and a step searches for at most 16"
    E512 NO_CONSOLE_TOKEN BadRequest Mistake false
        "the console wants a token that the request does not have"
        "Open the console with #token=… behind its address, where … is the text of the file of --console_token; a program sends the header `authorization: Bearer …`."
        "the console wants its token in the header authorization"
    E513 MODEL_FAILED Task Mistake false
        "the library behind a model failed while it scored rows"
        "Run the model with the same rows in its own library: the message is what that says. Only ONNX models can fail in this way."
        "the model could not score the rows: indices element out of data bounds, idx=7 must be within the inclusive range [-4,3]"
    E514 FOREIGN_PAGE BadRequest Mistake false
        "a page that is not the console asks the console"
        "Use the console's own page. A program sends the header `origin` with the console's own address, such as http://127.0.0.1:8081."
        "this request does not come from the console's own page"
    E515 ROWS_HIDDEN BadRequest Mistake false
        "the console does not show the values of rows"
        "Start the server without --console_rows off, or use `rankd why`."
        "the console does not show what became of rows: the server was started with --console_rows off"

    E601 OVERLOADED Overloaded Weather true
        "the server has more requests than it can answer in time"
        "Try again after the seconds in the header `retry-after`. If it lasts, add replicas."
        "the server is overloaded; try again"
    E602 PLAN_LIMIT Overloaded Weather true
        "the plan has reached its limit of concurrent runs"
        "Try again, or raise --plan_limit for this plan."
        "this plan has reached its concurrency limit; try again"
    E604 BODIES_TOO_LARGE Overloaded Weather true
        "the bodies of all requests together take all the memory that they may have"
        "Try again, or raise --bodies_mb."
        "request bodies have used up the memory set by --bodies_mb; try again"
    E605 STILL_LOADING Overloaded Weather true
        "the server has just started and is still loading its plans"
        "Try again; /readyz says when the server is ready."
        "the server is still loading its plans; try again"
    E606 NO_CONNECTION Overloaded Weather true
        "the server has as many connections as it may have, and all are busy"
        "Try again, use fewer connections, or raise --connections_max."
        "the connection limit is reached and all connections are busy; try again"
    E607 UNREAD_ANSWERS Overloaded Weather true
        "the client does not read the answers that were sent on its connection"
        "Read them, then try again; --answers_mb is how much may be unread."
        "1048576 bytes of answers on this connection have not been read yet: read them, then try again"
    E608 RUN_TOO_LARGE Overloaded Weather true
        "the rows of one run take more memory than a run may have"
        "Let the plan keep fewer rows: filter or take before columns are added and lists are followed. Or raise --run_bytes_max."
        "the rows of the run take more than 67108864 bytes, the limit of --run_bytes_max"
    E609 QUESTION_UNDER_WAY Overloaded Weather true
        "another question about items is being answered, and one is answered at a time"
        "Try again."
        "other questions about items kept this one waiting for 5000 ms; try again"

    E701 CANCELLED Cancelled Weather true
        "the run was stopped because the caller went away or the process is stopping"
        "Nothing, if the caller went away. When a server is stopping, send the request to another one."
        "the run was cancelled"

    E901 BUG Bug Mistake false
        "a task panicked, or something that must hold inside rankd did not"
        "Report it with the message; the log has the plan, the node and the request id."
        "the task panicked: index out of bounds"
    E902 DIFFERENT_REGISTRY Bug Mistake false
        "a plan and a request, an engine or what links the plan were made with different registries"
        "In a program of your own: check, link and prepare requests with the same registry."
        "the request was made with another registry than the plan \"feed\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_and_no_name_is_used_twice() {
        assert!(ALL.is_sorted_by(|a, b| a.id < b.id), "codes are listed by number");
        let mut names: Vec<&str> = ALL.iter().map(|code| code.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn every_code_is_documented() {
        for code in ALL {
            let number = code.id.strip_prefix('E').and_then(|number| number.parse::<u16>().ok());
            assert!(number.is_some_and(|number| (100..1000).contains(&number)), "{code}");
            assert!(!code.about.is_empty() && !code.about.ends_with('.'), "{code}: {}", code.about);
            assert!(code.help.ends_with('.'), "{code}: {}", code.help);
            assert!(!code.example.is_empty(), "{code}");
        }
    }

    #[test]
    fn only_what_passes_by_itself_is_worth_a_retry() {
        for code in ALL {
            assert!(!code.retry || code.cause == Cause::Weather, "{code}");
            // The server says with `retry-after` when to come back.
            assert!(code.retry || code.kind != ErrorKind::Overloaded, "{code}");
        }
    }
}
