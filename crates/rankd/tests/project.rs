//! A project as its users have it: a folder, commands from anywhere inside it, settings, secrets, environments.

#[path = "project/folder.rs"]
mod folder;
#[path = "project/import.rs"]
mod import;
#[path = "project/init.rs"]
mod init;
#[path = "run/json.rs"]
mod json;
#[path = "project/output.rs"]
mod output;
#[path = "project/places.rs"]
mod places;
#[path = "project/registry.rs"]
mod registry;
#[path = "project/settings.rs"]
mod settings;
