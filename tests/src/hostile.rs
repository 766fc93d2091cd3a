//! Policy components put together instruction by instruction, for what no honest policy does.

use std::path::Path;

use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, DataSection, ExportKind, ExportSection, Function,
    FunctionSection, GlobalSection, GlobalType, ImportSection, Instruction, MemArg, MemArgTarget,
    MemorySection, MemoryType, Module, TypeSection, ValType,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, WorldId};

/// What a component's `decide` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decide {
    /// Allows one DELETE from `plugin_preview.t`, at bytes 0 to 2.
    Allow,
    /// Denies with the code `no-good`, at bytes 2 to 5, with an edit that inserts `x` at byte 2.
    Deny,
    /// Allows nothing at all, which is no answer.
    AllowNothing,
    /// Points outside its memory for an answer.
    PointOutside,
    /// Never ends, and uses its fuel up within a moment.
    LoopForever,
    /// Never ends, and makes its fuel last for seconds.
    LoopSlowly,
    /// Traps.
    Trap,
    /// Takes memory for as long as it gets some.
    TakeMemory,
    /// Calls itself.
    Recurse,
    /// Traps when it sees what an earlier call left in a global or in memory; denies otherwise.
    Remember,
    /// Adds two vectors, then denies.
    UseSimd,
}

/// Where text constants start.
const TEXTS: usize = 1024;
/// Where `Decide::Remember` leaves its mark.
const MARK: u64 = 4096;
/// Where the record of `describe` lies.
const DESCRIPTION: i32 = 8192;
/// Where the answers lie.
const ALLOW: i32 = 16384;
const DENY: i32 = 16640;
const ALLOW_NOTHING: i32 = 16896;
/// Where allocations for arguments start.
const HEAP: i32 = 65536;

const PAGE: i32 = 65536;

/// A component that calls itself `hostile` 0.0.0, written for `sql-jdbc:v1`.
///
/// # Panics
///
/// When the component cannot be encoded, which is a mistake here.
pub fn policy(decide: Decide) -> Vec<u8> {
    encode(core(decide, None), "")
}

/// The component that denies, with further functions without parameters that nobody calls.
///
/// # Panics
///
/// When the component cannot be encoded, which is a mistake here.
pub fn policy_with_functions(further: &[Function]) -> Vec<u8> {
    encode(core_with(Decide::Deny, None, further), "")
}

/// A component with the same export that also imports a function `clock`.
///
/// # Panics
///
/// When the component cannot be encoded, which is a mistake here.
pub fn policy_with_import() -> Vec<u8> {
    encode(core(Decide::Deny, Some("clock")), "import clock: func() -> u32;")
}

/// A component without any export.
///
/// # Panics
///
/// When the component cannot be encoded, which is a mistake here.
pub fn no_policy() -> Vec<u8> {
    let mut module = Module::new().finish();
    let mut resolve = Resolve::default();
    resolve.push_str("empty.wit", "package test:empty; world empty {}").expect("a world");
    let package = resolve.packages.iter().next().expect("its package").0;
    let world = resolve.select_world(&[package], Some("empty")).expect("the world");
    embed(&mut module, &resolve, world)
}

/// The core module of [`policy`], with the interface embedded: what `tollgate policy build` takes.
///
/// # Panics
///
/// When the module cannot be encoded, which is a mistake here.
pub fn core_module(decide: Decide) -> Vec<u8> {
    let mut module = core(decide, None);
    let (resolve, world) = interface("");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)
        .expect("metadata");
    module
}

fn encode(mut module: Vec<u8>, imports: &str) -> Vec<u8> {
    let (resolve, world) = interface(imports);
    embed(&mut module, &resolve, world)
}

fn embed(module: &mut Vec<u8>, resolve: &Resolve, world: WorldId) -> Vec<u8> {
    embed_component_metadata(module, resolve, world, StringEncoding::UTF8, false)
        .expect("metadata");
    ComponentEncoder::default()
        .module(module)
        .and_then(ComponentEncoder::encode)
        .expect("a component")
}

/// wit/policy.wit, and a world that exports its interface and has these imports.
fn interface(imports: &str) -> (Resolve, WorldId) {
    let mut resolve = Resolve::default();
    resolve.push_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit")).expect("wit/policy.wit");
    let world = format!(
        "package test:hostile; world hostile {{ {imports} export tollgate:policy/gate@1.0.0; }}"
    );
    let package = resolve.push_str("hostile.wit", &world).expect("a world");
    let world = resolve.select_world(&[package], Some("hostile")).expect("the world");
    (resolve, world)
}

const TYPE_REALLOC: u32 = 0;
const TYPE_DESCRIBE: u32 = 1;
const TYPE_DECIDE: u32 = 2;

const GLOBAL_HEAP: u32 = 0;
const GLOBAL_SEEN: u32 = 1;

const TYPE_FURTHER: u32 = 3;

fn core(decide: Decide, import: Option<&str>) -> Vec<u8> {
    core_with(decide, import, &[])
}

fn core_with(decide: Decide, import: Option<&str>, further: &[Function]) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32; 4], [ValType::I32]);
    types.ty().function([], [ValType::I32]);
    types.ty().function([ValType::I32; 6], [ValType::I32]);
    types.ty().function([], []);

    let mut imports = ImportSection::new();
    if let Some(name) = import {
        imports.import("$root", name, wasm_encoder::EntityType::Function(TYPE_DESCRIBE));
    }
    let first = u32::from(import.is_some());

    let mut functions = FunctionSection::new();
    for function in [TYPE_REALLOC, TYPE_DESCRIBE, TYPE_DECIDE] {
        functions.function(function);
    }
    for _ in further {
        functions.function(TYPE_FURTHER);
    }
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: 4,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut globals = GlobalSection::new();
    let mutable = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
    globals.global(mutable, &ConstExpr::i32_const(HEAP));
    globals.global(mutable, &ConstExpr::i32_const(0));

    let mut exports = ExportSection::new();
    exports.export("memory", ExportKind::Memory, 0);
    exports.export("cabi_realloc", ExportKind::Func, first);
    exports.export("tollgate:policy/gate@1.0.0#describe", ExportKind::Func, first + 1);
    exports.export("tollgate:policy/gate@1.0.0#decide", ExportKind::Func, first + 2);

    let mut code = CodeSection::new();
    code.function(&realloc());
    code.function(&body([Instruction::I32Const(DESCRIPTION)]));
    code.function(&body(decide.instructions(first + 2)));
    for function in further {
        code.function(function);
    }

    let mut module = Module::new();
    module.section(&types).section(&imports).section(&functions).section(&memories);
    module.section(&globals).section(&exports).section(&code).section(&Data::answers());
    module.finish()
}

fn body<'a>(instructions: impl IntoIterator<Item = Instruction<'a>>) -> Function {
    let mut function = Function::new([]);
    for instruction in instructions {
        function.instruction(&instruction);
    }
    function.instruction(&Instruction::End);
    function
}

/// Hands out memory upwards and takes none back; grows once for what does not fit.
fn realloc() -> Function {
    use Instruction::{
        Drop, End, GlobalGet, GlobalSet, I32Add, I32And, I32Const, I32DivU, I32GtU, I32Mul, If,
        LocalGet, LocalTee, MemoryGrow, MemorySize,
    };
    body([
        // Aligned to 8, kept as the result in the place of the first parameter.
        GlobalGet(GLOBAL_HEAP),
        I32Const(7),
        I32Add,
        I32Const(-8),
        I32And,
        LocalTee(0),
        LocalGet(3),
        I32Add,
        GlobalSet(GLOBAL_HEAP),
        GlobalGet(GLOBAL_HEAP),
        MemorySize(0),
        I32Const(PAGE),
        I32Mul,
        I32GtU,
        If(BlockType::Empty),
        LocalGet(3),
        I32Const(PAGE),
        I32DivU,
        I32Const(1),
        I32Add,
        MemoryGrow(0),
        Drop,
        End,
        LocalGet(0),
    ])
}

impl Decide {
    fn instructions(self, own_index: u32) -> Vec<Instruction<'static>> {
        use Instruction::{
            Br, Call, Drop, End, GlobalGet, GlobalSet, I32Const, I32Eq, I32Load, I32Or, I32Store,
            If, LocalGet, Loop, MemoryGrow, Unreachable,
        };
        let mark =
            MemArg { offset: MARK, align: 2, target: MemArgTarget::Memory(0), ordering: None };
        match self {
            Self::Allow => vec![I32Const(ALLOW)],
            Self::Deny => vec![I32Const(DENY)],
            Self::AllowNothing => vec![I32Const(ALLOW_NOTHING)],
            Self::PointOutside => vec![I32Const(-64)],
            // A long body: a turn of an empty loop costs two units of fuel and as much time as this.
            Self::LoopForever => std::iter::once(Loop(BlockType::Empty))
                .chain((0..500).flat_map(|_| [I32Const(0), Drop]))
                .chain([Br(0), End, Unreachable])
                .collect(),
            Self::LoopSlowly => vec![Loop(BlockType::Empty), Br(0), End, Unreachable],
            Self::Trap => vec![Unreachable],
            Self::TakeMemory => vec![
                Loop(BlockType::Empty),
                I32Const(64),
                MemoryGrow(0),
                I32Const(-1),
                I32Eq,
                If(BlockType::Empty),
                Unreachable,
                End,
                Br(0),
                End,
                Unreachable,
            ],
            Self::Recurse => {
                (0..6).map(LocalGet).chain([Call(own_index), Drop, I32Const(DENY)]).collect()
            }
            Self::Remember => vec![
                GlobalGet(GLOBAL_SEEN),
                I32Const(0),
                I32Load(mark),
                I32Or,
                If(BlockType::Empty),
                Unreachable,
                End,
                I32Const(1),
                GlobalSet(GLOBAL_SEEN),
                I32Const(0),
                I32Const(1),
                I32Store(mark),
                I32Const(DENY),
            ],
            Self::UseSimd => vec![
                Instruction::V128Const(1),
                Instruction::V128Const(2),
                Instruction::I32x4Add,
                Drop,
                I32Const(DENY),
            ],
        }
    }
}

/// Data segments: records as the canonical ABI lays them out.
struct Data {
    section: DataSection,
    texts_end: usize,
}

impl Data {
    fn answers() -> DataSection {
        let mut data = Self { section: DataSection::new(), texts_end: TEXTS };
        data.describe();
        data.deny();
        data.allow();
        data.at(ALLOW_NOTHING, &[0; 20]);
        data.section
    }

    fn describe(&mut self) {
        let mut record = self.text("hostile");
        record.extend(self.text("0.0.0"));
        let code = self.text("sql-jdbc:v1");
        record.extend(self.list(&code, 1));
        record.extend([0; 8]); // no sql_mode
        record.extend(self.text("utf8mb4"));
        record.extend(self.text("+00:00"));
        record.extend(words([1_048_576, 100, 1_000, 200, 40, 700_000]));
        self.at(DESCRIPTION, &record);
    }

    fn deny(&mut self) {
        let mut diagnostic = self.text("no-good");
        diagnostic.extend(words([0])); // error
        diagnostic.extend(self.text("`é` is no good"));
        diagnostic.extend(words([1]));
        diagnostic.extend(self.text("write something else"));
        diagnostic.extend(words([1, 0])); // statement 0
        diagnostic.extend(words([1, 2, 5])); // span
        diagnostic.extend(words([1, 2, 2])); // edit
        diagnostic.extend(self.text("x"));
        let mut answer = words([1]);
        answer.extend(self.list(&diagnostic, 1));
        self.at(DENY, &answer);
    }

    fn allow(&mut self) {
        let mut table = self.text("plugin_preview");
        table.extend(self.text("t"));
        table.extend(words([2])); // write
        let mut statement = words([0, 3]); // delete
        statement.extend(self.text("DELETE FROM `plugin_preview`.`t` WHERE (`id` = 1)"));
        statement.extend(self.list(&table, 1));
        statement.extend(words([0, 2])); // span
        let mut answer = words([0]);
        answer.extend(self.list(&statement, 1));
        answer.extend([0; 8]); // no advisories
        self.at(ALLOW, &answer);
    }

    /// Lays a text out; its address and length.
    fn text(&mut self, text: &str) -> Vec<u8> {
        self.list(text.as_bytes(), text.len())
    }

    /// Lays the elements of a list out; its address and length.
    fn list(&mut self, elements: &[u8], count: usize) -> Vec<u8> {
        let at = self.texts_end;
        self.texts_end += elements.len().next_multiple_of(8);
        self.at(i32::try_from(at).expect("a small address"), elements);
        words([at, count].map(|word| u32::try_from(word).expect("a small number")))
    }

    fn at(&mut self, address: i32, bytes: &[u8]) {
        self.section.active(0, &ConstExpr::i32_const(address), bytes.iter().copied());
    }
}

fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
    words.map(u32::to_le_bytes).concat()
}
