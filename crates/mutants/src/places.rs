//! Writes the mutants of a file: each becomes a branch that is taken only for its number.

use proc_macro2::LineColumn;
use proc_macro2::Span;
use serde_json::Value;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

/// A mutant from the output of `cargo mutants --list --json`.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Its number in the sample, from 1.
    pub number: u32,
    /// The file, relative to the root of the tree.
    pub file: String,
    pub package: String,
    /// Position, change and function.
    pub name: String,
    genre: String,
    replacement: String,
    /// Line from 1, column from 0.
    from: (usize, usize),
    to: (usize, usize),
}

impl Mutant {
    /// Parses an element of the list of `file`.
    pub fn of_json(value: &Value, file: &str, package: &str) -> Option<Mutant> {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let place = |end: &str| {
            let at = &value["span"][end];
            Some((at["line"].as_u64()? as usize, at["column"].as_u64()? as usize - 1))
        };
        let (_, rest) = value["name"].as_str()?.split_once(':')?;
        Some(Mutant {
            number: 0,
            file: file.to_owned(),
            package: package.to_owned(),
            name: format!("{file}:{rest}"),
            genre: text("genre")?,
            replacement: text("replacement")?,
            from: place("start")?,
            to: place("end")?,
        })
    }

    /// The kind of change.
    pub fn genre(&self) -> &str {
        &self.genre
    }
}

/// Text inserted before and after a part of a file.
#[derive(Debug)]
struct Wrap {
    from: usize,
    to: usize,
    /// The inserted text before: text, branch of the mutant, text.
    before: [String; 3],
    after: String,
    number: u32,
}

/// A file with its mutants.
#[derive(Debug)]
pub struct MutatedFile {
    pub text: String,
    /// For each mutant the lines of its branch, from 1, both included.
    pub lines: Vec<(u32, usize, usize)>,
    /// Mutants without a possible branch: in constants, in pattern matches, or as a replacement of an `impl Trait`.
    pub unplaced: Vec<u32>,
}

/// Writes the file `text` with all of `mutants` in it.
///
/// # Errors
///
/// It does not parse.
pub fn write(text: &str, mutants: &[&Mutant]) -> syn::Result<MutatedFile> {
    let file = syn::parse_file(text)?;
    let mut finder =
        Finder { text, starts: line_starts(text), mutants, wraps: Vec::new(), constant: 0 };
    finder.visit_file(&file);
    let mut wraps = finder.wraps;
    // Insertions come before wraps that begin at the same position.
    wraps.sort_by_key(|wrap| (wrap.from, wrap.to > wrap.from, usize::MAX - wrap.to));
    let is_placed = |m: &&&Mutant| wraps.iter().any(|wrap| wrap.number == m.number);
    let unplaced = mutants.iter().filter(|m| !is_placed(m)).map(|m| m.number).collect();
    let mut written = MutatedFile { text: String::new(), lines: Vec::new(), unplaced };
    render(text, 0..text.len(), &wraps, &mut written);
    Ok(written)
}

/// Offset of each line.
fn line_starts(text: &str) -> Vec<usize> {
    let after = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
    [0].into_iter().chain(after).collect()
}

/// Writes `range` of `text` with `wraps`, which are within it, nested or consecutive.
fn render(text: &str, range: std::ops::Range<usize>, wraps: &[Wrap], into: &mut MutatedFile) {
    let mut at = range.start;
    let mut rest = wraps;
    while let Some((wrap, behind)) = rest.split_first() {
        into.text.push_str(&text[at..wrap.from]);
        let [before, branch, between] = &wrap.before;
        into.text.push_str(before);
        let first = 1 + into.text.matches('\n').count();
        into.text.push_str(branch);
        let last = 1 + into.text.matches('\n').count();
        into.lines.push((wrap.number, first, last));
        into.text.push_str(between);
        let inner = behind.iter().take_while(|other| other.to <= wrap.to).count();
        let inner = if wrap.from == wrap.to { 0 } else { inner };
        render(text, wrap.from..wrap.to, &behind[..inner], into);
        into.text.push_str(&wrap.after);
        at = wrap.to;
        rest = &behind[inner..];
    }
    into.text.push_str(&text[at..range.end]);
}

struct Finder<'a> {
    text: &'a str,
    starts: Vec<usize>,
    mutants: &'a [&'a Mutant],
    wraps: Vec<Wrap>,
    /// Nesting depth of constants, where no branch is possible.
    constant: u32,
}

/// The condition of a branch.
fn condition(number: u32) -> String {
    format!("crate::is_mutant({number})")
}

impl Finder<'_> {
    fn offset(&self, line: usize, column: usize) -> usize {
        let start = self.starts[line - 1];
        let rest = &self.text[start..];
        start + rest.char_indices().nth(column).map_or(rest.len(), |(i, _)| i)
    }

    fn range(&self, span: Span) -> (usize, usize) {
        let offset = |at: LineColumn| self.offset(at.line, at.column);
        (offset(span.start()), offset(span.end()))
    }

    fn of(&self, mutant: &Mutant) -> (usize, usize) {
        (self.offset(mutant.from.0, mutant.from.1), self.offset(mutant.to.0, mutant.to.1))
    }

    /// Mutants of this kind at exactly this position.
    fn at(&self, genre: &str, from: usize) -> Vec<Mutant> {
        let is_there = |m: &&&Mutant| m.genre == genre && self.of(m).0 == from;
        if self.constant > 0 {
            return Vec::new();
        }
        self.mutants.iter().filter(is_there).map(|m| (**m).clone()).collect()
    }

    /// `expr` or, for the mutant, `branch`.
    fn choose(&mut self, number: u32, (from, to): (usize, usize), branch: String) {
        let before = [format!("(if {} {{\n", condition(number)), branch, "\n} else { ".to_owned()];
        self.wraps.push(Wrap { from, to, before, after: " })".to_owned(), number });
    }

    fn body(&mut self, sig: &syn::Signature, block: &syn::Block) {
        // An `impl Trait` has one type, that of the body.
        if sig.constness.is_some() || returns_opaque(sig) {
            return;
        }
        let Some(first) = block.stmts.first() else { return };
        let last = block.stmts.last().unwrap_or(first);
        let (open, _) = self.range(block.brace_token.span.open());
        let within = (self.range(first.span()).0, self.range(last.span()).1);
        for mutant in self.mutants.iter().filter(|m| m.genre == "FnValue") {
            if self.of(mutant) == within && self.constant == 0 {
                let number = mutant.number;
                let before = [
                    format!(" if {} {{\n", condition(number)),
                    format!("return {};", mutant.replacement),
                    "\n} ".to_owned(),
                ];
                let (from, after) = (open + 1, String::new());
                self.wraps.push(Wrap { from, to: from, before, after, number });
            }
        }
    }
}

/// The return type is an `impl Trait`.
fn returns_opaque(sig: &syn::Signature) -> bool {
    let syn::ReturnType::Type(_, ty) = &sig.output else { return false };
    matches!(&**ty, syn::Type::ImplTrait(_))
}

/// The expression contains a pattern match, outside of nested blocks.
fn matches_pattern(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(both) => matches_pattern(&both.left) || matches_pattern(&both.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let is_const = item.sig.constness.is_some();
        self.body(&item.sig, &item.block);
        self.constant += u32::from(is_const);
        visit::visit_item_fn(self, item);
        self.constant -= u32::from(is_const);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let is_const = item.sig.constness.is_some();
        self.body(&item.sig, &item.block);
        self.constant += u32::from(is_const);
        visit::visit_impl_item_fn(self, item);
        self.constant -= u32::from(is_const);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.body(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.constant += 1;
        visit::visit_item_const(self, item);
        self.constant -= 1;
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.constant += 1;
        visit::visit_item_static(self, item);
        self.constant -= 1;
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.constant += 1;
        visit::visit_impl_item_const(self, item);
        self.constant -= 1;
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        self.constant += 1;
        visit::visit_trait_item_const(self, item);
        self.constant -= 1;
    }

    fn visit_type(&mut self, ty: &'ast syn::Type) {
        self.constant += 1;
        visit::visit_type(self, ty);
        self.constant -= 1;
    }

    fn visit_pat(&mut self, pat: &'ast syn::Pat) {
        self.constant += 1;
        visit::visit_pat(self, pat);
        self.constant -= 1;
    }

    fn visit_expr_repeat(&mut self, expr: &'ast syn::ExprRepeat) {
        self.visit_expr(&expr.expr);
        self.constant += 1;
        self.visit_expr(&expr.len);
        self.constant -= 1;
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.constant += 1;
        visit::visit_variant(self, variant);
        self.constant -= 1;
    }

    fn visit_expr_const(&mut self, expr: &'ast syn::ExprConst) {
        self.constant += 1;
        visit::visit_expr_const(self, expr);
        self.constant -= 1;
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        let (op_from, op_to) = self.range(expr.op.span());
        let (from, to) = self.range(expr.span());
        let logic = matches!(expr.op, syn::BinOp::And(_) | syn::BinOp::Or(_));
        let pattern = matches_pattern(&expr.left) || matches_pattern(&expr.right);
        for mutant in self.at("BinaryOperator", op_from) {
            if logic && pattern {
                continue;
            }
            let (left, right) = (&self.text[from..op_from], &self.text[op_to..to]);
            let branch = format!("{left}{}{right}", mutant.replacement);
            self.choose(mutant.number, (from, to), branch);
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        let (op_from, op_to) = self.range(expr.op.span());
        let (from, to) = self.range(expr.span());
        for mutant in self.at("UnaryOperator", op_from) {
            let branch = self.text[op_to..to].to_owned();
            self.choose(mutant.number, (from, to), branch);
        }
        visit::visit_expr_unary(self, expr);
    }

    fn visit_expr_struct(&mut self, expr: &'ast syn::ExprStruct) {
        let (from, to) = self.range(expr.span());
        for field in &expr.fields {
            let (field_from, field_to) = self.range(field.span());
            for mutant in self.at("StructField", field_from) {
                let behind = self.text[field_to..to].trim_start();
                let behind = behind.strip_prefix(',').unwrap_or(behind);
                let branch = format!("{}{behind}", &self.text[from..field_from]);
                self.choose(mutant.number, (from, to), branch);
            }
        }
        visit::visit_expr_struct(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let (arm_from, _) = self.range(arm.span());
        let guard = arm.guard.as_ref().map(|(_, guard)| &**guard);
        let pattern = guard.is_some_and(matches_pattern);
        for mutant in self.at("MatchArm", arm_from) {
            let number = mutant.number;
            match guard {
                _ if pattern => {}
                Some(guard) => {
                    let (from, to) = self.range(guard.span());
                    let before =
                        [String::new(), format!("!{} && (", condition(number)), String::new()];
                    self.wraps.push(Wrap { from, to, before, after: ")".to_owned(), number });
                }
                None => {
                    let (_, from) = self.range(arm.pat.span());
                    let before =
                        [String::new(), format!(" if !{}", condition(number)), String::new()];
                    self.wraps.push(Wrap { from, to: from, before, after: String::new(), number });
                }
            }
        }
        if let Some(guard) = guard.filter(|_| !pattern) {
            let place = self.range(guard.span());
            for mutant in self.at("MatchArmGuard", place.0) {
                self.choose(mutant.number, place, mutant.replacement.clone());
            }
        }
        visit::visit_arm(self, arm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(
        number: u32,
        genre: &str,
        replacement: &str,
        from: (usize, usize),
        to: (usize, usize),
    ) -> Mutant {
        Mutant {
            number,
            file: "f.rs".to_owned(),
            package: "p".to_owned(),
            name: String::new(),
            genre: genre.to_owned(),
            replacement: replacement.to_owned(),
            from,
            to,
        }
    }

    #[test]
    fn each_mutant_is_a_branch_of_its_own() {
        let text = "fn f(a: u32, b: u32) -> bool {\n    a + 1 == b\n}\n";
        let mutants = [
            mutant(1, "FnValue", "true", (2, 4), (2, 14)),
            mutant(2, "BinaryOperator", "-", (2, 6), (2, 7)),
            mutant(3, "BinaryOperator", "!=", (2, 10), (2, 12)),
        ];
        let written = write(text, &mutants.iter().collect::<Vec<_>>()).unwrap();
        let want = "fn f(a: u32, b: u32) -> bool { if crate::is_mutant(1) {\nreturn true;\n} \n    \
                    (if crate::is_mutant(3) {\na + 1 != b\n} else { \
                    (if crate::is_mutant(2) {\na - 1\n} else { a + 1 }) == b })\n}\n";
        assert_eq!(written.text, want);
        assert_eq!(written.lines, [(1, 2, 2), (3, 5, 5), (2, 7, 7)]);
        assert_eq!(written.unplaced, [] as [u32; 0]);
        syn::parse_file(&written.text).unwrap();
    }

    #[test]
    fn arms_guards_and_signs_have_branches_too() {
        let text = "fn f(a: i32) -> i32 {\n    match a {\n        1 => -a,\n        x if x > 5 => 2,\n        _ => 3,\n    }\n}\n";
        let mutants = [
            mutant(1, "MatchArm", "", (3, 8), (3, 16)),
            mutant(2, "UnaryOperator", "", (3, 13), (3, 14)),
            mutant(3, "MatchArmGuard", "true", (4, 13), (4, 18)),
            mutant(4, "BinaryOperator", ">=", (4, 15), (4, 16)),
        ];
        let written = write(text, &mutants.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(written.unplaced, [] as [u32; 0], "{}", written.text);
        syn::parse_file(&written.text).unwrap();
        assert!(written.text.contains("1 if !crate::is_mutant(1) =>"), "{}", written.text);
    }

    /// Two bodies of a function that returns `impl Trait` would need the same type.
    #[test]
    fn a_type_without_a_name_has_no_other_body() {
        let text = "fn f() -> impl Iterator<Item = u32> {\n    0..3\n}\n";
        let mutant = mutant(1, "FnValue", "::std::iter::empty()", (2, 4), (2, 8));
        assert_eq!(write(text, &[&mutant]).unwrap().unplaced, [1]);
    }

    #[test]
    fn constants_have_no_place_for_a_branch() {
        let text = "const A: u32 = 1 + 2;\nconst fn f() -> u32 {\n    1 + 2\n}\n";
        let mutants = [
            mutant(1, "BinaryOperator", "-", (1, 17), (1, 18)),
            mutant(2, "BinaryOperator", "-", (3, 6), (3, 7)),
            mutant(3, "FnValue", "0", (3, 4), (3, 9)),
        ];
        let written = write(text, &mutants.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(written.unplaced, [1, 2, 3]);
        assert_eq!(written.text, text);
    }
}
