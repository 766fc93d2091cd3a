//! What a component consists of, found by reading it before anything of it is compiled.
//!
//! What a compiler takes for a function grows with the square of its branches, and with its branches times
//! its values, so half a megabyte of code made for it takes minutes and gigabytes. The bounds of
//! [`limits`](super::limits) keep any component that passes to seconds and to what a machine has. Here
//! things are only counted, in one pass. That the component is valid is for the compiler to find.

use std::ops::Range;

use wasmparser::{
    BinaryReaderError, Encoding, FunctionBody, MemoryType, Operator, Parser, Payload, TableType,
    TypeSectionReader,
};

use super::bindings::GATE;
use super::error::LoadError;
use super::limits::{
    COMPONENT_BRANCHES_MAX, COMPONENT_BYTES_MAX, COMPONENT_CANONICALS_MAX,
    COMPONENT_CODE_BYTES_MAX, COMPONENT_DECLARATIONS_MAX, COMPONENT_FUNCTIONS_MAX,
    COMPONENT_INSTANCES_MAX, COMPONENT_INTERFACE_BYTES_MAX, COMPONENT_MERGES_MAX,
    COMPONENT_MODULES_MAX, COMPONENT_SQUARES_MAX, FUNCTION_BRANCHES_MAX, FUNCTION_BYTES_MAX,
    FUNCTION_LOCALS_MAX, FUNCTION_LOOP_NESTING_MAX, FUNCTION_MERGES_MAX, GUEST_MEMORIES_MAX,
    GUEST_MEMORY_BYTES_MAX, GUEST_TABLE_ELEMENTS_MAX, GUEST_TABLES_MAX, TYPE_ARITY_MAX,
};

/// How every module and component begins.
const MAGIC: &[u8] = b"\0asm";

/// Bytes of a page of linear memory.
const PAGE_BYTES: u64 = 64 << 10;

/// Refuses what is no component, what imports something, what does not export the gate, and what has
/// more of anything than a component may have.
pub(super) fn check(bytes: &[u8]) -> Result<(), LoadError> {
    within("bytes", bytes.len() as u64, COMPONENT_BYTES_MAX)?;
    if !bytes.starts_with(MAGIC) {
        let what = "it does not begin as WebAssembly does";
        return Err(LoadError::NotAComponent(wasmtime::Error::msg(what)));
    }
    let mut walk = Walk::default();
    for payload in Parser::new(0).parse_all(bytes) {
        walk.take(payload.map_err(unreadable)?)?;
    }
    walk.end()
}

/// A walk through a component and everything that it holds.
#[derive(Default)]
struct Walk {
    /// How many components and modules the walk is in, the outermost one included.
    depth: u32,
    imports: Vec<String>,
    exports_gate: bool,
    modules: u64,
    instances: u64,
    canonicals: u64,
    interface_bytes: u64,
    declarations: u64,
    functions: u64,
    tables: u64,
    memories: u64,
    code_bytes: u64,
    branches: u64,
    squares: u64,
    merges: u64,
    /// The most parameters or results that a type of the module has: a block may have any of its types.
    arity: u64,
}

impl Walk {
    fn take(&mut self, payload: Payload<'_>) -> Result<(), LoadError> {
        match payload {
            Payload::Version { encoding, .. } => self.enter(encoding),
            Payload::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                Ok(())
            }
            Payload::TypeSection(_)
            | Payload::ImportSection(_)
            | Payload::FunctionSection(_)
            | Payload::TableSection(_)
            | Payload::MemorySection(_)
            | Payload::GlobalSection(_)
            | Payload::ExportSection(_)
            | Payload::ElementSection(_)
            | Payload::DataSection(_)
            | Payload::CodeSectionEntry(_) => self.take_of_module(payload),
            _ => self.take_of_component(payload),
        }
    }

    fn enter(&mut self, encoding: Encoding) -> Result<(), LoadError> {
        if self.depth == 0 && encoding == Encoding::Module {
            let what = "it is a core module: `tollgate policy build` makes a component of one";
            return Err(LoadError::NotAComponent(wasmtime::Error::msg(what)));
        }
        self.depth += 1;
        self.arity = 0;
        if encoding == Encoding::Module {
            return count(&mut self.modules, 1, "core modules", COMPONENT_MODULES_MAX);
        }
        Ok(())
    }

    fn take_of_module(&mut self, payload: Payload<'_>) -> Result<(), LoadError> {
        match payload {
            Payload::TypeSection(section) => {
                self.declare(section.count())?;
                self.take_types(section)
            }
            Payload::ImportSection(section) => self.declare(section.count()),
            Payload::GlobalSection(section) => self.declare(section.count()),
            Payload::ExportSection(section) => self.declare(section.count()),
            Payload::ElementSection(section) => self.declare(section.count()),
            Payload::DataSection(section) => self.declare(section.count()),
            Payload::FunctionSection(section) => {
                let found = u64::from(section.count());
                count(&mut self.functions, found, "functions", COMPONENT_FUNCTIONS_MAX)
            }
            Payload::TableSection(section) => {
                let found = u64::from(section.count());
                count(&mut self.tables, found, "tables", u64::from(GUEST_TABLES_MAX))?;
                section.into_iter().try_for_each(|it| check_table(&it.map_err(unreadable)?.ty))
            }
            Payload::MemorySection(section) => {
                let found = u64::from(section.count());
                count(&mut self.memories, found, "memories", u64::from(GUEST_MEMORIES_MAX))?;
                section.into_iter().try_for_each(|it| check_memory(it.map_err(unreadable)?))
            }
            Payload::CodeSectionEntry(body) => self.take_function(&body),
            _ => Ok(()),
        }
    }

    fn take_of_component(&mut self, payload: Payload<'_>) -> Result<(), LoadError> {
        let is_outermost = self.depth == 1;
        let range = match payload {
            Payload::InstanceSection(section) => {
                self.instantiate(section.count())?;
                section.range()
            }
            Payload::ComponentInstanceSection(section) => {
                self.instantiate(section.count())?;
                section.range()
            }
            Payload::ComponentCanonicalSection(section) => {
                let (found, what) = (u64::from(section.count()), "lifted or lowered functions");
                count(&mut self.canonicals, found, what, COMPONENT_CANONICALS_MAX)?;
                section.range()
            }
            Payload::ComponentImportSection(section) => {
                let range = section.range();
                for import in section.into_iter().take_while(|_| is_outermost) {
                    self.imports.push(import.map_err(unreadable)?.name.name.to_owned());
                }
                range
            }
            Payload::ComponentExportSection(section) => {
                let range = section.range();
                for export in section.into_iter().take_while(|_| is_outermost) {
                    self.exports_gate |= export.map_err(unreadable)?.name.name == GATE;
                }
                range
            }
            Payload::ComponentAliasSection(section) => section.range(),
            Payload::ComponentTypeSection(section) => section.range(),
            Payload::CoreTypeSection(section) => section.range(),
            // A few bytes each, and nothing that is compiled.
            _ => return Ok(()),
        };
        let what = "bytes of types and instructions for linking";
        count(&mut self.interface_bytes, length(&range), what, COMPONENT_INTERFACE_BYTES_MAX)
    }

    fn declare(&mut self, found: u32) -> Result<(), LoadError> {
        let what = "types, imports, exports, globals and segments";
        count(&mut self.declarations, u64::from(found), what, COMPONENT_DECLARATIONS_MAX)
    }

    fn instantiate(&mut self, found: u32) -> Result<(), LoadError> {
        count(&mut self.instances, u64::from(found), "instances", COMPONENT_INSTANCES_MAX)
    }

    fn take_types(&mut self, section: TypeSectionReader<'_>) -> Result<(), LoadError> {
        for function in section.into_iter_err_on_gc_types() {
            let function = function.map_err(unreadable)?;
            let arity = function.params().len().max(function.results().len()) as u64;
            within("parameters or results of one type", arity, TYPE_ARITY_MAX)?;
            self.arity = self.arity.max(arity);
        }
        Ok(())
    }

    fn take_function(&mut self, body: &FunctionBody<'_>) -> Result<(), LoadError> {
        let bytes = length(&body.range());
        within("bytes in one function", bytes, FUNCTION_BYTES_MAX)?;
        count(&mut self.code_bytes, bytes, "bytes of code", COMPONENT_CODE_BYTES_MAX)?;
        let mut locals = 0;
        for group in body.get_locals_reader().map_err(unreadable)? {
            let (found, _) = group.map_err(unreadable)?;
            let what = "local variables in one function";
            count(&mut locals, u64::from(found), what, FUNCTION_LOCALS_MAX)?;
        }
        let branches = branches_of(body)?;
        count(&mut self.branches, branches, "branches", COMPONENT_BRANCHES_MAX)?;
        let (square, what) = (branches.saturating_mul(branches), "squares of branches");
        count(&mut self.squares, square, what, COMPONENT_SQUARES_MAX)?;
        // Parameters of the function and of its blocks are values, too.
        let merges = branches.saturating_mul(locals.saturating_add(self.arity));
        let what = "branches times values in one function";
        within(what, merges, FUNCTION_MERGES_MAX)?;
        count(&mut self.merges, merges, "branches times values", COMPONENT_MERGES_MAX)
    }

    fn end(self) -> Result<(), LoadError> {
        if !self.imports.is_empty() {
            return Err(LoadError::Imports(self.imports));
        }
        if self.exports_gate { Ok(()) } else { Err(LoadError::MissingExports(vec![GATE.into()])) }
    }
}

fn check_table(table: &TableType) -> Result<(), LoadError> {
    within("elements in one table", table.initial, GUEST_TABLE_ELEMENTS_MAX as u64)
}

fn check_memory(memory: MemoryType) -> Result<(), LoadError> {
    let bytes = memory.initial.saturating_mul(PAGE_BYTES);
    within("bytes of memory at first", bytes, GUEST_MEMORY_BYTES_MAX as u64)
}

/// The branches of a function, in which loops nest within bounds.
fn branches_of(body: &FunctionBody<'_>) -> Result<u64, LoadError> {
    let mut branches = 0;
    // Of each block that is open, whether it is a loop.
    let (mut open, mut loops) = (Vec::new(), 0_u64);
    for operator in body.get_operators_reader().map_err(unreadable)? {
        // What cannot be read is not compiled either, and who does not compile it says better why.
        let Ok(operator) = operator else { break };
        count(&mut branches, weight(&operator), "branches in one function", FUNCTION_BRANCHES_MAX)?;
        match operator {
            Operator::Loop { .. } => {
                open.push(true);
                loops += 1;
                within("loops in loops", loops, FUNCTION_LOOP_NESTING_MAX)?;
            }
            Operator::Block { .. } | Operator::If { .. } => open.push(false),
            Operator::End if open.pop() == Some(true) => loops = loops.saturating_sub(1),
            _ => {}
        }
    }
    Ok(branches)
}

/// How many ways of going on an instruction adds.
fn weight(operator: &Operator<'_>) -> u64 {
    match operator {
        Operator::Block { .. }
        | Operator::Loop { .. }
        | Operator::If { .. }
        | Operator::Else
        | Operator::Br { .. }
        | Operator::BrIf { .. } => 1,
        Operator::BrTable { targets } => 2 + u64::from(targets.len()),
        // An element of a table is made when it is first used, which the code has to ask each time.
        Operator::CallIndirect { .. } | Operator::TableGet { .. } | Operator::TableSet { .. } => 3,
        _ => 0,
    }
}

/// Adds to a count that has a bound.
fn count(sum: &mut u64, found: u64, what: &'static str, max: u64) -> Result<(), LoadError> {
    *sum = sum.saturating_add(found);
    within(what, *sum, max)
}

fn within(what: &'static str, found: u64, max: u64) -> Result<(), LoadError> {
    if found > max { Err(LoadError::Bound { what, found, max }) } else { Ok(()) }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

fn unreadable(error: BinaryReaderError) -> LoadError {
    LoadError::NotAComponent(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_policy_stays_far_below_every_bound() {
        let bytes = include_bytes!("../../../policies/mysql-repeatable-subset-1.0.0.wasm");
        let mut walk = Walk::default();
        for payload in Parser::new(0).parse_all(bytes) {
            walk.take(payload.unwrap()).unwrap();
        }
        for (found, max) in [
            (bytes.len() as u64, COMPONENT_BYTES_MAX),
            (walk.modules, COMPONENT_MODULES_MAX),
            (walk.instances, COMPONENT_INSTANCES_MAX),
            (walk.canonicals, COMPONENT_CANONICALS_MAX),
            (walk.interface_bytes, COMPONENT_INTERFACE_BYTES_MAX),
            (walk.declarations, COMPONENT_DECLARATIONS_MAX),
            (walk.functions, COMPONENT_FUNCTIONS_MAX),
            (walk.code_bytes, COMPONENT_CODE_BYTES_MAX),
            (walk.branches, COMPONENT_BRANCHES_MAX),
            (walk.squares, COMPONENT_SQUARES_MAX),
            (walk.merges, COMPONENT_MERGES_MAX),
        ] {
            assert!(found > 0 && found * 2 <= max, "{found} of {max}");
        }
        walk.end().unwrap();
    }

    #[test]
    fn what_is_cut_off_anywhere_is_no_component() {
        let bytes = include_bytes!("../../../policies/mysql-repeatable-subset-1.0.0.wasm");
        for end in [0, 4, 8, 9, 100, 10_000, bytes.len() / 2, bytes.len() - 1] {
            let error = check(bytes.get(..end).unwrap()).unwrap_err();
            assert!(!matches!(error, LoadError::Bound { .. }), "{end}: {error:?}");
        }
    }
}
