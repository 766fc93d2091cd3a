//! Functions that are small and take a compiler long.

use wasm_encoder::{BlockType, Function, Instruction, ValType};

/// What a function is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bomb {
    /// One instruction after the other.
    Straight,
    /// Blocks in blocks.
    Nested,
    /// Loops in loops, each of which every local variable goes round.
    NestedLoops,
    /// One loop after the other, each of which changes a local variable.
    Loops,
    /// One condition after the other.
    Conditions,
    /// Jump tables with many targets.
    JumpTables,
}

impl Bomb {
    /// A function with this many turns of it and this many local variables.
    pub fn function(self, turns: u32, locals: u32) -> Function {
        use Instruction::{
            Block, Br, BrIf, BrTable, End, I32Add, I32Const, If, LocalGet, LocalSet, Loop,
        };
        let mut function = Function::new([(locals, ValType::I32)]);
        let mut put = |instructions: &[Instruction<'_>]| {
            for instruction in instructions {
                function.instruction(instruction);
            }
        };
        let local = |turn: u32| turn % locals;
        let count = |local| [LocalGet(local), I32Const(1), I32Add, LocalSet(local)];
        match self {
            Self::Straight => (0..turns).for_each(|turn| put(&count(local(turn)))),
            Self::Nested => {
                (0..turns).for_each(|_| put(&[Block(BlockType::Empty)]));
                (0..turns).for_each(|_| put(&[End]));
            }
            Self::NestedLoops => {
                (0..turns).for_each(|_| put(&[Loop(BlockType::Empty)]));
                (0..locals).for_each(|local| put(&count(local)));
                (0..turns).for_each(|turn| put(&[LocalGet(local(turn)), BrIf(0), End]));
            }
            Self::Loops => (0..turns).for_each(|turn| {
                put(&[Loop(BlockType::Empty)]);
                put(&count(local(turn)));
                put(&[LocalGet(local(turn)), BrIf(0), End]);
            }),
            Self::Conditions => (0..turns).for_each(|turn| {
                put(&[LocalGet(local(turn)), If(BlockType::Empty)]);
                put(&count(local(turn + 1)));
                put(&[End]);
            }),
            Self::JumpTables => (0..turns).for_each(|turn| {
                put(&[Block(BlockType::Empty), Block(BlockType::Empty), LocalGet(local(turn))]);
                put(&[BrTable([0, 1].repeat(50).into(), 0), End, End, Br(0)]);
            }),
        }
        function.instruction(&Instruction::End);
        function
    }
}
