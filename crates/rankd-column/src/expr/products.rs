//! Sums of products as one step: what scores are made of.
//!
//! Only steps that nothing came after are taken back, so that what they read is still as it was.

use crate::expr::compile::{Compiler, File, Held};
use crate::expr::operations::Binary;
use crate::expr::step::{Operand, Placed, Step};
use crate::value::Type;

impl Compiler<'_> {
    /// One step in place of a float addition and the multiplications right before it, if there are any.
    pub(super) fn sum_of_products(&mut self, a: Held, b: Held) -> Option<Operand> {
        let (a, b) = if self.is_last_product(b) { (b, a) } else { (a, b) };
        let (x, y, register) = self.take_last_product(a)?;
        // The new step takes the register of the first product: neither product reads it, and its one reader is this step.
        let (other, register, spare) = match self.take_last_product(b) {
            Some((z, w, earlier)) => ((z, Some(w)), earlier, Held { operand: Operand::Register(register), ..a }),
            None => ((b.operand, None), register, b),
        };
        let blend = match other {
            (z, Some(w)) => self.take_last_default(z, w, spare).map(|blend| ((x, Some(y)), blend)),
            _ => None,
        };
        let blend = blend.or_else(|| Some((other, self.take_last_default(x, y, spare)?)));
        let step = match blend {
            Some(((a, b), (x, default, by))) => Step::FloatBlend { a, b, x, default, by },
            None => Step::FloatProducts(x, y, other.0, other.1),
        };
        if let Operand::Register(spare_register) = spare.operand {
            self.pool(spare.file).read(spare_register);
        }
        self.steps.push(Placed { step, register });
        Some(Operand::Register(register))
    }

    fn readers_left(&mut self, float: u32) -> u32 {
        self.pool(File::Typed(Type::Float)).readers[float as usize]
    }

    /// Whether the last step multiplied floats into this register, for one reader.
    fn is_last_product(&mut self, held: Held) -> bool {
        let last = match (held.operand, self.steps.last()) {
            (Operand::Register(held), Some(Placed { step: Step::FloatBinary(Binary::Mul, ..), register })) => {
                (held == *register).then_some(held)
            }
            _ => None,
        };
        held.file == File::Typed(Type::Float)
            && last.is_some_and(|register| self.pool(held.file).readers[register as usize] == 1)
    }

    /// Takes that step back. What it read is as it was: no step came after it.
    fn take_last_product(&mut self, held: Held) -> Option<(Operand, Operand, u32)> {
        if !self.is_last_product(held) {
            return None;
        }
        match self.steps.pop()? {
            Placed { step: Step::FloatBinary(_, x, y), register } => Some((x, y, register)),
            _ => None,
        }
    }

    /// Takes the last step back if it gave a column's nulls a value for this product alone: the column, the value, the factor.
    ///
    /// Its register may by now be the spare one: that of a product which was taken back, too.
    fn take_last_default(&mut self, x: Operand, y: Operand, spare: Held) -> Option<(Operand, Operand, Operand)> {
        let (register, by) = match (x, y) {
            (Operand::Register(register), by @ Operand::Uniform(_)) => (register, by),
            (by @ Operand::Uniform(_), Operand::Register(register)) => (register, by),
            _ => return None,
        };
        let is_spare = spare.operand == Operand::Register(register);
        let is_free = is_spare || self.readers_left(register) == 0;
        let (column, default) = match self.steps.last()? {
            Placed {
                step: Step::Coalesce(Type::Float, x @ Operand::Column(_), default @ Operand::Uniform(_)),
                register: written,
            } if *written == register && is_free => (*x, *default),
            _ => return None,
        };
        self.steps.pop();
        Some((column, default, by))
    }
}
