//! A project as its users have it: a folder, commands from anywhere inside it, settings, secrets, environments.

#[path = "project/folder.rs"]
mod folder;
#[path = "run/json.rs"]
mod json;
#[path = "project/places.rs"]
mod places;
#[path = "project/registry.rs"]
mod registry;
#[path = "project/settings.rs"]
mod settings;
