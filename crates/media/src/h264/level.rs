//! Levels: which decoder a stream asks for (H.264, annex A.3.1, table A-1).

/// What a stream needs of its decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Width and height, in macroblocks.
    pub(crate) columns: u32,
    pub(crate) rows: u32,
    /// Rounded up.
    pub(crate) macroblocks_per_second: u64,
    pub(crate) bits_per_second: u64,
    /// The largest picture, which must fit the coded picture buffer.
    pub(crate) picture_bits: u64,
}

/// level_idc: ten times the number of the lowest level that meets the demand; `None` beyond level 6.2.
pub(crate) fn level_idc(demand: Demand) -> Option<u8> {
    let macroblocks = u64::from(demand.columns) * u64::from(demand.rows);
    let longest = u64::from(demand.columns.max(demand.rows));
    LEVELS
        .iter()
        .find(|level| {
            demand.macroblocks_per_second <= level.macroblocks_per_second
                && macroblocks <= level.macroblocks
                && longest * longest <= 8 * level.macroblocks
                && demand.bits_per_second <= 1000 * level.kilobits_per_second
                && demand.picture_bits <= 1000 * level.buffer_kilobits
        })
        .map(|level| level.idc)
}

struct Level {
    idc: u8,
    /// MaxMBPS.
    macroblocks_per_second: u64,
    /// MaxFS.
    macroblocks: u64,
    /// MaxBR, for the VCL of the baseline profile.
    kilobits_per_second: u64,
    /// MaxCPB, likewise.
    buffer_kilobits: u64,
}

const fn level(
    idc: u8,
    macroblocks_per_second: u64,
    macroblocks: u64,
    kilobits_per_second: u64,
    buffer_kilobits: u64,
) -> Level {
    Level { idc, macroblocks_per_second, macroblocks, kilobits_per_second, buffer_kilobits }
}

/// Table A-1, without 1b, which needs a flag of its own.
const LEVELS: [Level; 19] = [
    level(10, 1_485, 99, 64, 175),
    level(11, 3_000, 396, 192, 500),
    level(12, 6_000, 396, 384, 1_000),
    level(13, 11_880, 396, 768, 2_000),
    level(20, 11_880, 396, 2_000, 2_000),
    level(21, 19_800, 792, 4_000, 4_000),
    level(22, 20_250, 1_620, 4_000, 4_000),
    level(30, 40_500, 1_620, 10_000, 10_000),
    level(31, 108_000, 3_600, 14_000, 14_000),
    level(32, 216_000, 5_120, 20_000, 20_000),
    level(40, 245_760, 8_192, 20_000, 25_000),
    level(41, 245_760, 8_192, 50_000, 62_500),
    level(42, 522_240, 8_704, 50_000, 62_500),
    level(50, 589_824, 22_080, 135_000, 135_000),
    level(51, 983_040, 36_864, 240_000, 240_000),
    level(52, 2_073_600, 36_864, 240_000, 240_000),
    level(60, 4_177_920, 139_264, 240_000, 240_000),
    level(61, 8_355_840, 139_264, 480_000, 480_000),
    level(62, 16_711_680, 139_264, 800_000, 800_000),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_formats_get_their_usual_level() {
        for (columns, rows, frames, kbps, level) in [
            (22, 18, 15, 300, 12),
            (80, 45, 30, 2_000, 31),
            (80, 45, 60, 2_000, 32),
            (120, 68, 30, 6_000, 40),
            (120, 68, 30, 20_000_u64, 40),
            (120, 68, 30, 20_001, 41),
            (240, 135, 60, 20_000, 52),
        ] {
            let demand = Demand {
                columns,
                rows,
                macroblocks_per_second: u64::from(columns * rows * frames),
                bits_per_second: kbps * 1000,
                picture_bits: 0,
            };
            assert_eq!(level_idc(demand), Some(level), "{demand:?}");
        }
    }

    #[test]
    fn no_level_is_endless() {
        let demand = Demand {
            columns: 600,
            rows: 300,
            macroblocks_per_second: 1,
            bits_per_second: 1,
            picture_bits: 1,
        };
        assert_eq!(level_idc(demand), None);
    }
}
