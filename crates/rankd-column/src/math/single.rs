//! The natural logarithm in single precision, bit by bit as glibc has computed it since 2.27.
//!
//! Model files hold scores that were made with it, and a score that differs in the last bit differs everywhere after. It is
//! computed in double precision: a power of two, one of 16 numbers `1/c` near 1/x, the known ln c, and a polynomial of degree 4.
//! glibc fuses some of its steps where the processor can; on none of the 2^31 arguments does that change the result.

/// 1 / c, and ln c rounded once, for each sixteenth.
const CENTRES: [(f64, f64); 16] = [
    (1.398_907_162_146_528, -0.335_691_333_328_822_84),
    (1.340_314_189_663_799_8, -0.292_904_056_377_407_4),
    (1.286_432_210_124_115, -0.251_872_658_093_736_9),
    (1.236_715_021_426_989_5, -0.212_458_688_071_172_55),
    (1.190_697_716_671_175_2, -0.174_539_451_837_456_34),
    (1.147_982_102_055_642_9, -0.138_005_707_231_975_8),
    (1.108_225_144_827_215_8, -0.102_759_766_985_451_39),
    (1.071_129_741_305_738_1, -0.068_713_924_470_205_25),
    (1.036_437_278_977_283, -0.035_789_138_739_822_8),
    (1.0, 0.0),
    (0.949_285_979_573_905_7, 0.052_045_177_429_294_96),
    (0.895_104_942_860_900_4, 0.110_814_312_987_879_42),
    (0.847_682_162_035_110_3, 0.165_249_522_369_514_3),
    (0.805_031_485_169_200_1, 0.216_873_890_316_999_77),
    (0.766_467_100_884_310_8, 0.265_963_502_812_139_7),
    (0.731_428_603_316_328, 0.312_755_666_407_355_7),
];

/// (ln(1 + r) - r) / r², lowest coefficient first.
const REST: [f64; 3] = [-0.499_999_748_580_210_3, 0.333_456_765_744_066, -0.250_893_422_142_371_54];

/// The sixteenths begin here: 0.69921875.
const FIRST: u32 = 0x3f33_0000;

/// The natural logarithm.
pub fn logf(x: f32) -> f32 {
    if x < 0.0 {
        return f32::NAN;
    }
    if x == 0.0 {
        return f32::NEG_INFINITY;
    }
    if !x.is_finite() {
        return x;
    }
    // A subnormal number has no exponent of its own.
    let (bits, more) = if x < f32::MIN_POSITIVE { ((x * 8_388_608.0).to_bits(), -23) } else { (x.to_bits(), 0) };
    let above = bits.wrapping_sub(FIRST);
    let whole = f64::from((above as i32 >> 23) + more);
    let (inverse, known) = CENTRES[(above >> 19 & 15) as usize];
    let r = f64::from(f32::from_bits(bits.wrapping_sub(above & 0xff80_0000))) * inverse - 1.0;
    let square = r * r;
    let rest = REST[2] * square + (REST[1] * r + REST[0]);
    (rest * square + ((known + whole * std::f64::consts::LN_2) + r)) as f32
}
