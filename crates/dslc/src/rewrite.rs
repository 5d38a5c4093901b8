//! Turns the operators of plan code into calls of the runtime, each with its place.
//!
//! Operators, not patterns: what an operand is shows only when the code runs, so every operator is rewritten, and the runtime does
//! what JavaScript does where no operand is an expression. The right sides of `&&`, `||`, `??` and `?:` become functions, so they
//! are as lazy as before. A call keeps its callee and its arguments; the last argument is wrapped to note the call's place just
//! before the call is made. A whole number that a float cannot hold exactly becomes a BigInt. Types are not looked into, and neither
//! are enums, whose values the compiler works out by itself.

use crate::places::{OptionPlace, Places};
use oxc::allocator::{Allocator, TakeIn};
use oxc::ast::ast::*;
use oxc::ast::builder::AstBuilder;
use oxc::ast_visit::{Visit, VisitMut, walk_mut};
use oxc::span::{GetSpan, SPAN, Span};
use oxc::syntax::number::{BigintBase, NumberBase};
use oxc::syntax::operator::{AssignmentOperator, BinaryOperator, LogicalOperator, UnaryOperator};

/// The name under which rewritten code finds the runtime. Plans may not use it.
pub(crate) const RUNTIME: &str = "$rankd";

/// A use of the language that plans do not have.
pub(crate) struct RefusedSyntax {
    pub(crate) span: Span,
    pub(crate) message: &'static str,
    pub(crate) help: &'static str,
}

/// `Key.score`, `P.weight` or `EP.redis.main`: names of the registry as they are written.
pub(crate) struct Named {
    pub(crate) span: Span,
    pub(crate) path: Vec<String>,
}

pub(crate) struct Rewrite<'a, 'p> {
    ast: AstBuilder<'a>,
    allocator: &'a Allocator,
    places: &'p mut Places,
    file: u32,
    /// How many functions that the rewriting made are around the code at hand; `yield` cannot leave them.
    inside_lazy: u32,
    pub(crate) refused: Vec<RefusedSyntax>,
    pub(crate) named: Vec<Named>,
    /// Names that the file declares itself.
    pub(crate) declared: Vec<String>,
}

impl<'a, 'p> Rewrite<'a, 'p> {
    pub(crate) fn new(allocator: &'a Allocator, places: &'p mut Places, file: u32) -> Rewrite<'a, 'p> {
        let ast = AstBuilder::new(allocator);
        let (refused, named, declared) = Default::default();
        Rewrite { ast, allocator, places, file, inside_lazy: 0, refused, named, declared }
    }

    fn refuse(&mut self, span: Span, message: &'static str, help: &'static str) {
        self.refused.push(RefusedSyntax { span, message, help });
    }

    fn number(&self, value: u32) -> Expression<'a> {
        Expression::new_numeric_literal(SPAN, f64::from(value), None, NumberBase::Decimal, &self.ast)
    }

    /// `$rankd.name(arguments…)`
    fn call(&self, span: Span, name: &'static str, arguments: Vec<Expression<'a>>) -> Expression<'a> {
        let runtime = Expression::new_identifier(SPAN, RUNTIME, &self.ast);
        let name = IdentifierName::new(SPAN, name, &self.ast);
        let callee = Expression::new_static_member_expression(span, runtime, name, false, &self.ast);
        let mut list = oxc::allocator::Vec::new_in(&self.allocator);
        list.extend(arguments.into_iter().map(Argument::from));
        Expression::new_call_expression(span, callee, None, list, false, &self.ast)
    }

    /// `() => expression`
    fn lazy(&self, expression: Expression<'a>) -> Expression<'a> {
        let span = expression.span();
        let kind = FormalParameterKind::ArrowFormalParameters;
        let params = FormalParameters::boxed(SPAN, kind, [], None, &self.ast);
        let body = ArrowFunctionBody::from(expression);
        Expression::new_arrow_function_expression(span, false, None, params, None, body, &self.ast)
    }

    /// Wraps an expression in a call of the runtime that looks at it.
    fn wrap(&mut self, expression: &mut Expression<'a>, name: &'static str) {
        if !is_plain(expression) {
            self.wrap_any(expression, name);
        }
    }

    fn wrap_any(&mut self, expression: &mut Expression<'a>, name: &'static str) {
        let span = expression.span();
        let place = self.places.add(self.file, span, []);
        let inner = expression.take_in(&self.allocator);
        *expression = self.call(span, name, vec![inner, self.number(place)]);
    }

    fn binary(&mut self, it: &mut Expression<'a>) {
        let Expression::BinaryExpression(binary) = it else { return };
        let (name, other) = binary_call(binary.operator);
        // A power is computed as in a run, whatever it is of.
        let is_power = binary.operator == BinaryOperator::Exponential;
        if is_plain(&binary.left) && is_plain(&binary.right) && !is_power {
            return;
        }
        let span = binary.span;
        let place = self.places.add(self.file, span, [binary.left.span(), binary.right.span()]);
        let (left, right) = (binary.left.take_in(&self.allocator), binary.right.take_in(&self.allocator));
        let mut arguments = vec![left, right, self.number(place)];
        if let Some(operator) = other {
            arguments.insert(0, Expression::new_string_literal(SPAN, operator, None, &self.ast));
        }
        *it = self.call(span, name, arguments);
    }

    fn unary(&mut self, it: &mut Expression<'a>) {
        let Expression::UnaryExpression(unary) = it else { return };
        if is_plain(&unary.argument) {
            return;
        }
        let span = unary.span;
        let place = self.places.add(self.file, span, [unary.argument.span()]);
        let operator = unary.operator;
        let argument = unary.argument.take_in(&self.allocator);
        *it = match operator {
            UnaryOperator::UnaryNegation => self.call(span, "neg", vec![argument, self.number(place)]),
            UnaryOperator::UnaryPlus => self.call(span, "plus", vec![argument, self.number(place)]),
            UnaryOperator::LogicalNot => self.call(span, "not", vec![argument, self.number(place)]),
            UnaryOperator::BitwiseNot => {
                let operator = Expression::new_string_literal(SPAN, "~", None, &self.ast);
                let nothing = Expression::new_null_literal(SPAN, &self.ast);
                self.call(span, "other", vec![operator, argument, nothing, self.number(place)])
            }
            UnaryOperator::Typeof => self.type_of(span, argument, place),
            UnaryOperator::Void | UnaryOperator::Delete => {
                Expression::new_unary_expression(span, operator, argument, &self.ast)
            }
        };
    }

    /// `typeof x` may ask for a name that is not there: `typeof x === "undefined" ? "undefined" : $rankd.kind(x)`.
    fn type_of(&self, span: Span, argument: Expression<'a>, place: u32) -> Expression<'a> {
        let name = match &argument {
            Expression::Identifier(name) => name.name,
            _ => return self.call(span, "kind", vec![argument, self.number(place)]),
        };
        let undefined = || Expression::new_string_literal(SPAN, "undefined", None, &self.ast);
        let read = Expression::new_identifier(argument.span(), name, &self.ast);
        let asked = Expression::new_unary_expression(span, UnaryOperator::Typeof, read, &self.ast);
        let test =
            Expression::new_binary_expression(span, asked, BinaryOperator::StrictEquality, undefined(), &self.ast);
        let known = self.call(span, "kind", vec![argument, self.number(place)]);
        Expression::new_conditional_expression(span, test, undefined(), known, &self.ast)
    }

    /// A whole number of 2^53 or more as a BigInt, so that all its digits count.
    fn exact(&self, it: &mut Expression<'a>) {
        let Expression::NumericLiteral(literal) = it else { return };
        if let Some(digits) = exact_digits(literal) {
            let digits: &'a str = self.allocator.alloc_str(&digits);
            *it = Expression::new_big_int_literal(literal.span, digits, None, BigintBase::Decimal, &self.ast);
        }
    }

    fn logical(&mut self, it: &mut Expression<'a>) {
        let Expression::LogicalExpression(logical) = it else { return };
        let span = logical.span;
        let place = self.places.add(self.file, span, [logical.left.span(), logical.right.span()]);
        let name = logical_call(logical.operator);
        let (left, right) = (logical.left.take_in(&self.allocator), logical.right.take_in(&self.allocator));
        *it = self.call(span, name, vec![left, self.lazy(right), self.number(place)]);
    }

    fn conditional(&mut self, it: &mut Expression<'a>) {
        let Expression::ConditionalExpression(conditional) = it else { return };
        let span = conditional.span;
        let parts = [&conditional.test, &conditional.consequent, &conditional.alternate].map(GetSpan::span);
        let place = self.places.add(self.file, span, parts);
        let test = conditional.test.take_in(&self.allocator);
        let (then, other) =
            (conditional.consequent.take_in(&self.allocator), conditional.alternate.take_in(&self.allocator));
        *it = self.call(span, "pick", vec![test, self.lazy(then), self.lazy(other), self.number(place)]);
    }

    /// `x += y` becomes `x = x + y` where reading `x` twice changes nothing, and `o.a[i] += y` a call that reads and writes it once.
    /// Elsewhere it stays as it is, and an expression in it is refused: when the code runs, or here where that would not show.
    fn assignment(&mut self, expression: &mut Expression<'a>) {
        let Expression::AssignmentExpression(it) = expression else { return };
        let Some(name) = assignment_call(it.operator) else { return };
        let place = self.places.add(self.file, it.span, [it.left.span(), it.right.span()]);
        if let Some(read) = self.read_of(&it.left) {
            let right = it.right.take_in(&self.allocator);
            let right = if it.operator.is_logical() { self.lazy(right) } else { right };
            it.operator = AssignmentOperator::Assign;
            it.right = self.call(it.span, name, vec![read, right, self.number(place)]);
            return;
        }
        let (span, logical) = (it.span, it.operator.is_logical());
        let (object, property) = match &mut it.left {
            AssignmentTarget::StaticMemberExpression(member) if !member.object.is_super() => {
                let name = Expression::new_string_literal(member.property.span, member.property.name, None, &self.ast);
                (member.object.take_in(&self.allocator), name)
            }
            AssignmentTarget::ComputedMemberExpression(member) if !member.object.is_super() => {
                (member.object.take_in(&self.allocator), member.expression.take_in(&self.allocator))
            }
            _ if logical => {
                return self.refuse(span, "a plan cannot decide by this target", "write it out: x = x ?? y");
            }
            _ => return,
        };
        let operator = Expression::new_string_literal(SPAN, name, None, &self.ast);
        let right = it.right.take_in(&self.allocator);
        let arguments = vec![object, property, operator, self.lazy(right), self.number(place)];
        *expression = self.call(span, "update", arguments);
    }

    fn read_of(&self, target: &AssignmentTarget<'a>) -> Option<Expression<'a>> {
        let simple = |expression: &Expression<'a>| match expression {
            Expression::Identifier(name) => Some(Expression::new_identifier(name.span, name.name, &self.ast)),
            Expression::ThisExpression(this) => Some(Expression::new_this_expression(this.span, &self.ast)),
            _ => None,
        };
        match target {
            AssignmentTarget::AssignmentTargetIdentifier(name) => {
                Some(Expression::new_identifier(name.span, name.name, &self.ast))
            }
            AssignmentTarget::StaticMemberExpression(member) => {
                let property = IdentifierName::new(member.property.span, member.property.name, &self.ast);
                let object = simple(&member.object)?;
                Some(Expression::new_static_member_expression(member.span, object, property, false, &self.ast))
            }
            AssignmentTarget::PrivateFieldExpression(member) => {
                let field = PrivateIdentifier::new(member.field.span, member.field.name, &self.ast);
                let object = simple(&member.object)?;
                Some(Expression::new_private_field_expression(member.span, object, field, false, &self.ast))
            }
            _ => None,
        }
    }

    /// Notes the place of a call, and of the options that are written in it.
    fn note_call(&mut self, it: &mut CallExpression<'a>) {
        let start = match &it.callee {
            Expression::StaticMemberExpression(member) => member.property.span.start,
            _ => it.span.start,
        };
        let span = Span::new(start, it.span.end);
        let parts: Vec<Span> = it.arguments.iter().map(GetSpan::span).collect();
        let (place, count) = (self.places.add(self.file, span, parts), it.arguments.len() as u32);
        if let Some(Argument::ObjectExpression(object)) = it.arguments.first() {
            self.places.add_options(place, options(object));
        }
        let numbers = |this: &Self| vec![this.number(place), this.number(count)];
        match it.arguments.last_mut() {
            None => {
                let none = self.call(SPAN, "none", vec![self.number(place)]);
                it.arguments.push(Argument::new_spread_element(SPAN, none, &self.ast));
            }
            Some(Argument::SpreadElement(spread)) => {
                let list = spread.argument.take_in(&self.allocator);
                let mut arguments = numbers(self);
                arguments.push(list);
                spread.argument = self.call(SPAN, "here", arguments);
            }
            Some(argument) => {
                let Some(expression) = argument.as_expression_mut() else { return };
                let last = expression.take_in(&self.allocator);
                let mut arguments = numbers(self);
                arguments.push(last);
                *argument = Argument::from(self.call(SPAN, "here", arguments));
            }
        }
    }

    fn note_name(&mut self, it: &StaticMemberExpression<'a>) {
        let property = it.property.name.to_string();
        let path = match &it.object {
            Expression::Identifier(root) if matches!(&*root.name, "Key" | "P" | "U" | "M" | "E" | "Pred") => {
                vec![root.name.to_string(), property]
            }
            Expression::StaticMemberExpression(inner) => match &inner.object {
                Expression::Identifier(root) if root.name == "EP" => {
                    vec![root.name.to_string(), inner.property.name.to_string(), property]
                }
                _ => return,
            },
            _ => return,
        };
        self.named.push(Named { span: it.property.span, path });
    }
}

/// The digits of a whole number that a float may not hold exactly.
fn exact_digits(literal: &NumericLiteral<'_>) -> Option<String> {
    /// 2^53: from here on floats have gaps.
    const FLOAT_EXACT: f64 = 9_007_199_254_740_992.0;
    if literal.value < FLOAT_EXACT || !literal.value.is_finite() {
        return None;
    }
    let raw: String = literal.raw?.chars().filter(|c| *c != '_').collect();
    let (digits, radix) = match (literal.base, raw.get(2..)) {
        (NumberBase::Hex, Some(digits)) => (digits, 16),
        (NumberBase::Octal, Some(digits)) if raw.starts_with("0o") || raw.starts_with("0O") => (digits, 8),
        (NumberBase::Binary, Some(digits)) => (digits, 2),
        (NumberBase::Decimal, _) if raw.bytes().all(|byte| byte.is_ascii_digit()) => return Some(raw),
        // With a point or an exponent it is a float.
        (NumberBase::Decimal | NumberBase::Float | NumberBase::Octal | NumberBase::Hex | NumberBase::Binary, _) => {
            return None;
        }
    };
    // What does not fit here does not fit 64 bits, which is said where it is used.
    Some(u128::from_str_radix(digits, radix).unwrap_or(u128::MAX).to_string())
}

/// Whole numbers in an enum that a float cannot hold exactly: its values are worked out in floats.
#[derive(Default)]
struct Inexact(Vec<Span>);

impl<'a> Visit<'a> for Inexact {
    fn visit_numeric_literal(&mut self, it: &NumericLiteral<'a>) {
        if exact_digits(it).is_some() {
            self.0.push(it.span);
        }
    }
}

/// A literal: whatever the operator, JavaScript computes it as it is.
fn is_plain(expression: &Expression<'_>) -> bool {
    matches!(
        expression,
        Expression::NumericLiteral(_)
            | Expression::StringLiteral(_)
            | Expression::BooleanLiteral(_)
            | Expression::NullLiteral(_)
    )
}

fn options(object: &ObjectExpression<'_>) -> Vec<OptionPlace> {
    let properties = object.properties.iter().filter_map(|property| match property {
        ObjectPropertyKind::ObjectProperty(property) => Some(OptionPlace {
            name: property.key.static_name()?.to_string(),
            name_span: property.key.span(),
            value_span: property.value.span(),
        }),
        ObjectPropertyKind::SpreadProperty(_) => None,
    });
    properties.collect()
}

/// The runtime's name for an operator, and the operator itself where the name does not say it.
fn binary_call(operator: BinaryOperator) -> (&'static str, Option<&'static str>) {
    use BinaryOperator::*;
    match operator {
        Addition => ("add", None),
        Subtraction => ("sub", None),
        Multiplication => ("mul", None),
        Division => ("div", None),
        Remainder => ("mod", None),
        Exponential => ("pow", None),
        LessThan => ("lt", None),
        LessEqualThan => ("le", None),
        GreaterThan => ("gt", None),
        GreaterEqualThan => ("ge", None),
        Equality => ("eq", None),
        Inequality => ("ne", None),
        StrictEquality => ("same", None),
        StrictInequality => ("differs", None),
        BitwiseOR | BitwiseAnd | BitwiseXOR | ShiftLeft | ShiftRight | ShiftRightZeroFill | In | Instanceof => {
            ("other", Some(operator.as_str()))
        }
    }
}

fn logical_call(operator: LogicalOperator) -> &'static str {
    match operator {
        LogicalOperator::And => "and",
        LogicalOperator::Or => "or",
        LogicalOperator::Coalesce => "nullish",
    }
}

fn assignment_call(operator: AssignmentOperator) -> Option<&'static str> {
    match (operator.to_binary_operator(), operator.to_logical_operator()) {
        (Some(binary), _) => match binary_call(binary) {
            (name, None) => Some(name),
            (_, Some(_)) => None,
        },
        (_, Some(logical)) => Some(logical_call(logical)),
        _ => None,
    }
}

impl<'a> VisitMut<'a> for Rewrite<'a, '_> {
    fn visit_expression(&mut self, it: &mut Expression<'a>) {
        let lazy = matches!(it, Expression::LogicalExpression(_) | Expression::ConditionalExpression(_));
        self.inside_lazy += u32::from(lazy);
        walk_mut::walk_expression(self, it);
        self.inside_lazy -= u32::from(lazy);
        match it {
            Expression::BinaryExpression(_) => self.binary(it),
            Expression::UnaryExpression(_) => self.unary(it),
            Expression::LogicalExpression(_) => self.logical(it),
            Expression::ConditionalExpression(_) => self.conditional(it),
            Expression::AssignmentExpression(_) => self.assignment(it),
            Expression::NumericLiteral(_) => self.exact(it),
            Expression::PrivateInExpression(asked) => self.wrap(&mut asked.right, "within"),
            Expression::TemplateLiteral(template) => {
                for expression in &mut template.expressions {
                    self.wrap(expression, "text");
                }
            }
            _ => {}
        }
    }

    fn visit_assignment_expression(&mut self, it: &mut AssignmentExpression<'a>) {
        let lazy =
            it.operator != AssignmentOperator::Assign && (it.operator.is_logical() || self.read_of(&it.left).is_none());
        self.inside_lazy += u32::from(lazy);
        walk_mut::walk_assignment_expression(self, it);
        self.inside_lazy -= u32::from(lazy);
    }

    /// JavaScript uses the `done` that an iterator returns as a condition.
    fn visit_object_property(&mut self, it: &mut ObjectProperty<'a>) {
        walk_mut::walk_object_property(self, it);
        if it.key.static_name().is_some_and(|name| name == "done") && !it.method && it.kind == PropertyKind::Init {
            it.shorthand = false;
            self.wrap(&mut it.value, "cond");
        }
    }

    /// Names of properties stay as they are written.
    fn visit_property_key(&mut self, it: &mut PropertyKey<'a>) {
        if !matches!(it, PropertyKey::NumericLiteral(_)) {
            walk_mut::walk_property_key(self, it);
        }
    }

    fn visit_throw_statement(&mut self, it: &mut ThrowStatement<'a>) {
        walk_mut::walk_throw_statement(self, it);
        self.wrap_any(&mut it.argument, "thrown");
    }

    fn visit_decorator(&mut self, it: &mut Decorator<'a>) {
        self.refuse(it.span, "plans have no decorators", "call the function on what it decorates");
    }

    fn visit_call_expression(&mut self, it: &mut CallExpression<'a>) {
        walk_mut::walk_call_expression(self, it);
        self.note_call(it);
    }

    fn visit_static_member_expression(&mut self, it: &mut StaticMemberExpression<'a>) {
        self.note_name(it);
        walk_mut::walk_static_member_expression(self, it);
    }

    fn visit_computed_member_expression(&mut self, it: &mut ComputedMemberExpression<'a>) {
        walk_mut::walk_computed_member_expression(self, it);
        self.wrap(&mut it.expression, "index");
    }

    fn visit_if_statement(&mut self, it: &mut IfStatement<'a>) {
        walk_mut::walk_if_statement(self, it);
        self.wrap(&mut it.test, "cond");
    }

    fn visit_while_statement(&mut self, it: &mut WhileStatement<'a>) {
        walk_mut::walk_while_statement(self, it);
        self.wrap(&mut it.test, "cond");
    }

    fn visit_do_while_statement(&mut self, it: &mut DoWhileStatement<'a>) {
        walk_mut::walk_do_while_statement(self, it);
        self.wrap(&mut it.test, "cond");
    }

    fn visit_for_statement(&mut self, it: &mut ForStatement<'a>) {
        walk_mut::walk_for_statement(self, it);
        if let Some(test) = &mut it.test {
            self.wrap(test, "cond");
        }
    }

    fn visit_switch_statement(&mut self, it: &mut SwitchStatement<'a>) {
        walk_mut::walk_switch_statement(self, it);
        self.wrap(&mut it.discriminant, "switched");
        for case in &mut it.cases {
            if let Some(test) = &mut case.test {
                self.wrap(test, "cased");
            }
        }
    }

    fn visit_function(&mut self, it: &mut Function<'a>, flags: oxc::syntax::scope::ScopeFlags) {
        if it.r#async {
            self.refuse(it.span, "a plan has nothing to wait for", "write a function without async");
        }
        let outside = std::mem::take(&mut self.inside_lazy);
        walk_mut::walk_function(self, it, flags);
        self.inside_lazy = outside;
    }

    fn visit_arrow_function_expression(&mut self, it: &mut ArrowFunctionExpression<'a>) {
        if it.r#async {
            self.refuse(it.span, "a plan has nothing to wait for", "write a function without async");
        }
        walk_mut::walk_arrow_function_expression(self, it);
    }

    fn visit_await_expression(&mut self, it: &mut AwaitExpression<'a>) {
        self.refuse(it.span, "a plan has nothing to wait for", "leave out await");
        walk_mut::walk_await_expression(self, it);
    }

    fn visit_for_of_statement(&mut self, it: &mut ForOfStatement<'a>) {
        if it.r#await {
            self.refuse(it.span, "a plan has nothing to wait for", "leave out await");
        }
        walk_mut::walk_for_of_statement(self, it);
    }

    fn visit_yield_expression(&mut self, it: &mut YieldExpression<'a>) {
        if self.inside_lazy > 0 {
            self.refuse(it.span, "yield cannot be used inside &&, ||, ?? or ?:", "give it a statement of its own");
        }
        walk_mut::walk_yield_expression(self, it);
    }

    fn visit_import_expression(&mut self, it: &mut ImportExpression<'a>) {
        self.refuse(it.span, "a plan cannot import while it runs", "import at the top of the file");
        walk_mut::walk_import_expression(self, it);
    }

    fn visit_identifier_reference(&mut self, it: &mut IdentifierReference<'a>) {
        if it.name == RUNTIME {
            self.refuse(it.span, "$rankd is the compiler's own name", "choose another name");
        }
    }

    fn visit_binding_identifier(&mut self, it: &mut BindingIdentifier<'a>) {
        if it.name == RUNTIME {
            self.refuse(it.span, "$rankd is the compiler's own name", "choose another name");
        }
        self.declared.push(it.name.to_string());
    }

    fn visit_import_declaration(&mut self, it: &mut ImportDeclaration<'a>) {
        // Our own names mean the same when they are imported.
        if it.source.value != crate::resolve::RUNTIME_MODULE {
            walk_mut::walk_import_declaration(self, it);
        }
    }

    fn visit_ts_enum_declaration(&mut self, it: &mut TSEnumDeclaration<'a>) {
        self.visit_binding_identifier(&mut it.id);
        let mut inexact = Inexact::default();
        inexact.visit_ts_enum_declaration(it);
        for span in inexact.0 {
            self.refuse(span, "an enum cannot hold this number exactly", "write it as a const");
        }
    }

    fn visit_ts_type(&mut self, _: &mut TSType<'a>) {}

    fn visit_ts_type_alias_declaration(&mut self, _: &mut TSTypeAliasDeclaration<'a>) {}

    fn visit_ts_interface_declaration(&mut self, _: &mut TSInterfaceDeclaration<'a>) {}
}
