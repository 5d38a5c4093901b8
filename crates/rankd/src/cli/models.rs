//! `rankd models`: the models of the registry, what they read and what they give.

use crate::cli::check::{check_models, print_registry_problems};
use crate::cli::{DONE, ModelArgs, Places, WRONG, say};
use clap::Args;
use rankd_edge::library::Library;
use rankd_edge::model_list;

#[derive(Args)]
pub(crate) struct ModelsArgs {
    #[command(flatten)]
    places: Places,
    #[command(flatten)]
    models: ModelArgs,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ModelsArgs, library: &Library) -> u8 {
    let mut loaded = library.load_registry(&args.places.registry, &args.places.env);
    check_models(&args.models, library, &mut loaded);
    print_registry_problems(&loaded);
    if args.json {
        say::to_programs(&model_list::to_json(&loaded.registry));
    } else if loaded.registry.models.list().is_empty() {
        say::to_people("there are no models: they are [[model]] entries of registry/models.toml");
    } else {
        say::to_people(&model_list::in_words(&loaded.registry));
    }
    if loaded.has_errors() { WRONG } else { DONE }
}
