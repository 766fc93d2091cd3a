//! Policy components written as WebAssembly text, for what no honest policy does.

use std::fmt::Write as _;
use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Where the text constants of a module start.
const TEXTS: usize = 1024;
/// Where the record of `describe` lies.
const DESCRIPTION: usize = 8192;
/// Where records that a `decide` returns may be laid out.
const ANSWERS: usize = 16384;
/// Where allocations for arguments start.
const HEAP: usize = 65536;

/// A `decide` that never ends.
pub const ENDLESS_LOOP: &str = "(loop $again (br $again)) unreachable";
/// A `decide` that traps.
pub const TRAP: &str = "unreachable";
/// A `decide` that takes memory until there is none.
pub const MEMORY_BOMB: &str = "(loop $again
    (if (i32.eq (memory.grow (i32.const 64)) (i32.const -1)) (then unreachable))
    (br $again)) unreachable";
/// A `decide` that calls itself.
pub const RECURSION: &str = "(call $decide (local.get 0) (local.get 1) (local.get 2)
    (local.get 3) (local.get 4) (local.get 5)) (drop) (i32.const 0)";
/// A `decide` that allows nothing at all.
pub const EMPTY_ALLOW: &str = "(i32.const 16384)";
/// A `decide` that traps when it sees what an earlier call left.
pub const REMEMBERS: &str = "(if (global.get $seen) (then unreachable))
    (global.set $seen (i32.const 1))
    (if (i32.load (i32.const 4096)) (then unreachable))
    (i32.store (i32.const 4096) (i32.const 1))
    (i32.const 16456)";
/// A `decide` that denies with the code `no-good`, at bytes 2 to 5, with an edit that inserts `x`.
pub const DENY: &str = "(i32.const 16456)";
/// A `decide` that allows one DELETE.
pub const ALLOW: &str = "(i32.const 16600)";

/// A component that calls itself `hostile` 0.0.0 and decides with this body: parameters are
/// payload, catalog and protected tables, each as address and length, the result is the address of
/// a decision.
///
/// # Panics
///
/// When the body is no WebAssembly text.
pub fn policy(decide: &str) -> Vec<u8> {
    component(&module(decide, ""))
}

/// The same with more fields in its module.
///
/// # Panics
///
/// When the text is no WebAssembly text.
pub fn policy_with(decide: &str, fields: &str) -> Vec<u8> {
    component(&module(decide, fields))
}

/// The core module of such a component, as text.
pub fn module(decide: &str, fields: &str) -> String {
    let mut data = Data::default();
    data.description();
    data.answers();
    format!(
        r#"(module
        (memory (export "memory") 4)
        (global $heap (mut i32) (i32.const {HEAP}))
        (global $seen (mut i32) (i32.const 0))
        {fields}
        {data}
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
            (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
            (global.set $heap (i32.add (local.get $at) (local.get 3)))
            (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
                (then (drop (memory.grow (i32.add
                    (i32.div_u (local.get 3) (i32.const 65536)) (i32.const 1))))))
            (local.get $at))
        (func (export "tollgate:policy/gate@1.0.0#describe") (result i32)
            (i32.const {DESCRIPTION}))
        (func $decide (export "tollgate:policy/gate@1.0.0#decide")
            (param i32 i32 i32 i32 i32 i32) (result i32) {decide}))"#,
        data = data.text
    )
}

/// Makes a policy component of a core module's text.
///
/// # Panics
///
/// When the text is no module, or none that wit/policy.wit can be put on.
pub fn component(module: &str) -> Vec<u8> {
    ComponentEncoder::default()
        .module(&core_module(module))
        .and_then(|encoder| encoder.validate(false).encode())
        .expect("a component")
}

/// The binary form of a core module's text, with the interface embedded.
///
/// # Panics
///
/// When the text is no module.
pub fn core_module(module: &str) -> Vec<u8> {
    let mut bytes = wat::parse_str(module).expect("a core module");
    let mut resolve = Resolve::default();
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    let (package, _) = resolve.push_dir(&wit).expect("wit/policy.wit");
    let world = resolve.select_world(&[package], Some("policy")).expect("the world `policy`");
    embed_component_metadata(&mut bytes, &resolve, world, StringEncoding::UTF8).expect("metadata");
    bytes
}

/// Data segments of a module: records as the canonical ABI lays them out.
#[derive(Default)]
struct Data {
    text: String,
    texts_end: usize,
}

impl Data {
    fn description(&mut self) {
        let mut record = Vec::new();
        record.extend(self.string("hostile"));
        record.extend(self.string("0.0.0"));
        let code = self.string("sql-jdbc:v1");
        record.extend(self.list(&code, 1));
        record.extend([0; 8]); // no sql_mode
        record.extend(self.string("utf8mb4"));
        record.extend(self.string("+00:00"));
        record.extend([1_048_576_u32, 100, 1_000, 200, 40, 700_000].map(u32::to_le_bytes).concat());
        self.segment(DESCRIPTION, &record);
    }

    fn answers(&mut self) {
        // At 16384: an allow of nothing.
        self.segment(ANSWERS, &[0; 20]);
        // At 16456: a denial.
        let mut diagnostic = Vec::new();
        diagnostic.extend(self.string("no-good"));
        diagnostic.extend(0_u32.to_le_bytes()); // error
        diagnostic.extend(self.string("`é` is no good"));
        diagnostic.extend(1_u32.to_le_bytes()); // help
        diagnostic.extend(self.string("write something else"));
        diagnostic.extend([1_u32, 0].map(u32::to_le_bytes).concat()); // statement 0
        diagnostic.extend([1_u32, 2, 5].map(u32::to_le_bytes).concat()); // span
        diagnostic.extend([1_u32, 2, 2].map(u32::to_le_bytes).concat()); // fix
        diagnostic.extend(self.string("x"));
        let diagnostics = self.list(&diagnostic, 1);
        let mut deny = 1_u32.to_le_bytes().to_vec();
        deny.extend(diagnostics);
        self.segment(ANSWERS + 72, &deny);
        // At 16600: an allow of a DELETE.
        let mut table = Vec::new();
        table.extend(self.string("plugin_preview"));
        table.extend(self.string("t"));
        table.extend(2_u32.to_le_bytes()); // write
        let mut statement = [0_u32, 3].map(u32::to_le_bytes).concat(); // index, delete
        statement.extend(self.string("DELETE FROM `plugin_preview`.`t` WHERE (`id` = 1)"));
        statement.extend(self.list(&table, 1));
        statement.extend([0_u32, 2].map(u32::to_le_bytes).concat()); // span
        let mut allow = 0_u32.to_le_bytes().to_vec();
        allow.extend(self.list(&statement, 1));
        allow.extend([0; 8]); // no advisories
        self.segment(ANSWERS + 216, &allow);
    }

    /// Lays a text out; its address and length.
    fn string(&mut self, text: &str) -> Vec<u8> {
        self.list(text.as_bytes(), text.len())
    }

    /// Lays the bytes of a list out; its address and length.
    fn list(&mut self, bytes: &[u8], count: usize) -> Vec<u8> {
        let at = TEXTS + self.texts_end;
        self.texts_end += bytes.len().next_multiple_of(8);
        self.segment(at, bytes);
        [at, count].map(|n| u32::try_from(n).expect("small").to_le_bytes()).concat()
    }

    fn segment(&mut self, at: usize, bytes: &[u8]) {
        write!(self.text, "(data (i32.const {at}) \"").expect("a string takes it");
        for byte in bytes {
            write!(self.text, "\\{byte:02x}").expect("a string takes it");
        }
        self.text.push_str("\")\n");
    }
}
