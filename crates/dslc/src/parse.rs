//! From the text of one file to JavaScript that the sandbox can run: parsed, rewritten, types stripped, printed.

use crate::nesting;
use crate::places::{Places, SourceFile};
use crate::rewrite::{Named, Rewrite};
use oxc::allocator::Allocator;
use oxc::ast::ast::{Program, Statement};
use oxc::ast_visit::VisitMut;
use oxc::codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc::diagnostics::OxcDiagnostic;
use oxc::parser::{ParseOptions, Parser};
use oxc::semantic::SemanticBuilder;
use oxc::span::{SourceType, Span};
use oxc::transformer::{TransformOptions, Transformer};
use rankd_plan::{Code, Diagnostic, Diagnostics};
use std::path::Path;

/// A file that can run.
pub(crate) struct Module {
    pub(crate) code: String,
    /// What the file imports, as it is written.
    pub(crate) imports: Vec<(String, Span)>,
    /// Line and column in the code, then in the source; all from 0, in order.
    lines: Vec<[u32; 4]>,
    pub(crate) named: Vec<Named>,
    pub(crate) declared: Vec<String>,
}

impl Module {
    /// The line and column of the source, from 0, that a line and column of the code came from.
    pub(crate) fn source_of(&self, line: u32, column: u32) -> Option<(u32, u32)> {
        let after = self.lines.partition_point(|[l, c, ..]| (*l, *c) <= (line, column));
        let [code_line, _, source_line, source_column] = *self.lines.get(after.checked_sub(1)?)?;
        (code_line == line).then_some((source_line, source_column))
    }
}

/// Reports everything that is wrong with the text; `None` where it cannot run.
pub(crate) fn module(file: &SourceFile, number: u32, places: &mut Places, found: &mut Diagnostics) -> Option<Module> {
    let text = file.text.as_str();
    if let Some(at) = nesting::too_deep(text) {
        let message = "the code is nested too deeply, or one statement is too long";
        let source = file.span(at as u32, at as u32 + 1);
        found.push(Diagnostic::new(Code::SourceNesting, "", message).source(Some(source)));
        return None;
    }
    let errors_before = found.errors();
    let allocator = Allocator::default();
    let options = ParseOptions { preserve_parens: false, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, text, SourceType::ts()).with_options(options).parse();
    for diagnostic in parsed.diagnostics {
        found.push(syntax(file, &diagnostic));
    }
    if found.errors() > errors_before {
        return None;
    }
    let mut program = parsed.program;
    let imports = imports(&program);
    let mut rewrite = Rewrite::new(&allocator, places, number);
    rewrite.visit_program(&mut program);
    let (named, declared) = (rewrite.named, rewrite.declared);
    for refused in rewrite.refused {
        let source = file.span(refused.span.start, refused.span.end);
        let wrong = Diagnostic::new(Code::NotInPlans, "", refused.message).help(refused.help);
        found.push(wrong.source(Some(source)));
    }
    let checked = SemanticBuilder::new().with_check_syntax_error(true).with_enum_eval(true).build(&program);
    for diagnostic in checked.diagnostics {
        found.push(syntax(file, &diagnostic));
    }
    if found.errors() > errors_before {
        return None;
    }
    let scoping = checked.semantic.into_scoping();
    let transform = TransformOptions::default();
    let stripped =
        Transformer::new(&allocator, Path::new(&file.path), &transform).build_with_scoping(scoping, &mut program);
    for diagnostic in stripped.diagnostics {
        found.push(syntax(file, &diagnostic));
    }
    if found.errors() > errors_before {
        return None;
    }
    let options = CodegenOptions {
        comments: CommentOptions::disabled(),
        source_map_path: Some(Path::new(&file.path).to_owned()),
        ..CodegenOptions::default()
    };
    let printed = Codegen::new().with_options(options).with_source_text(text).build(&program);
    let tokens = printed.map.iter().flat_map(|map| map.get_tokens().collect::<Vec<_>>());
    let lines = tokens.map(|t| [t.get_dst_line(), t.get_dst_col(), t.get_src_line(), t.get_src_col()]).collect();
    Some(Module { code: printed.code, imports, lines, named, declared })
}

fn imports(program: &Program<'_>) -> Vec<(String, Span)> {
    let sources = program.body.iter().filter_map(|statement| match statement {
        Statement::ImportDeclaration(import) if !import.import_kind.is_type() => Some(&import.source),
        Statement::ExportAllDeclaration(export) if !export.export_kind.is_type() => Some(&export.source),
        Statement::ExportFromDeclaration(export) if !export.export_kind.is_type() => Some(&export.source),
        _ => None,
    });
    sources.map(|source| (source.value.to_string(), source.span)).collect()
}

/// A problem that the parser found, in our words and with our place.
fn syntax(file: &SourceFile, diagnostic: &OxcDiagnostic) -> Diagnostic {
    let label = diagnostic.labels.first();
    let span = label.map_or((0, 0), |label| (label.offset(), label.offset() + label.len()));
    let message = diagnostic.message.trim_end_matches('.').to_owned();
    let wrong = Diagnostic::new(Code::SourceSyntax, "", message).source(Some(file.span(span.0, span.1)));
    match &diagnostic.help {
        Some(help) => wrong.help(help.clone()),
        None => wrong,
    }
}
