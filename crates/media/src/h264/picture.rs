//! The test picture: colour bars, above them a lane in which a white block crosses once a GOP, and below,
//! growing upwards from the right corner, as much noise as the picture is to weigh.
//!
//! The weight is picture content, not padding: a server may drop filler data or SEI messages, but it cannot
//! drop a macroblock. Coarse weight is I_PCM macroblocks, fine weight is intra macroblocks with noise in
//! their DC coefficients. The quantiser is chosen so that every flat colour comes out exactly.

use crate::bits::BitWriter;
use crate::h264::residual::{Block, write_dc, write_full_luma_dc};
use crate::nal::append_escaped;
use crate::noise::Noise;

/// QP of every macroblock. At 28 one step of a luma DC level is one step of brightness, and one step of a
/// chroma DC level is two steps of colour (clauses 8.5.10 and 8.5.11 with flat scaling).
pub(crate) const QUANTISER: i32 = 28;

/// Bits of frame_num.
pub(crate) const FRAME_NUM_BITS: u32 = 8;

/// The bytes by which an I_PCM macroblock outweighs the flat or skipped one that it replaces, within one.
pub(crate) const PCM_BYTES: u64 = 386;

/// The smallest picture in which the block can move, in macroblocks each way.
pub(crate) const MIN_MACROBLOCKS: u32 = 4;

/// The most macroblocks of grain in a picture: more would outweigh one of I_PCM.
const MAX_GRAIN: u32 = 30;

/// A scene of one size. Coding a picture changes nothing but the noise.
#[derive(Debug)]
pub(crate) struct Scene {
    columns: u32,
    rows: u32,
    /// The height of lane and block.
    lane_rows: u32,
    noise: Noise,
    /// Horizontal motion in the lane of the picture being coded, one a macroblock, in quarter pixels.
    motion: Vec<i32>,
}

/// A picture to be coded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Picture {
    pub(crate) kind: Kind,
    /// Where the block is, in pixels from its place in the first picture of the GOP.
    pub(crate) block: u32,
    pub(crate) weight: Weight,
}

/// How a picture is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An IDR picture; the id differs between two that follow each other.
    Idr { idr_pic_id: u32 },
    /// A P picture; how many pictures it comes after the last IDR picture.
    Predicted {
        index: u32,
        /// Where the block was in the picture before.
        previous_block: u32,
    },
}

/// How many macroblocks of noise a picture has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// I_PCM, [`PCM_BYTES`] each.
    pub(crate) pcm: u32,
    /// Noise in the DC coefficients, some 14 bytes each.
    pub(crate) grain: u32,
}

impl Weight {
    /// The weight that adds `bytes`, at most [`Scene::noise_bytes`], or up to one grain less.
    pub(crate) fn of_bytes(kind: Kind, bytes: u64) -> Self {
        let grain = bytes % PCM_BYTES * 8 / kind.grain_bits();
        Self { pcm: (bytes / PCM_BYTES) as u32, grain: grain as u32 }
    }
}

impl Kind {
    /// The bits by which a grain macroblock outweighs the flat or skipped one that it replaces.
    fn grain_bits(self) -> u64 {
        match self {
            Self::Idr { .. } => 107 - 6,
            Self::Predicted { .. } => 110,
        }
    }
}

impl Scene {
    /// A scene of this number of macroblocks.
    pub(crate) fn new(columns: u32, rows: u32, seed: u64) -> Self {
        let lane_rows = rows.div_ceil(20);
        let motion = vec![0; (columns * lane_rows) as usize];
        Self { columns, rows, lane_rows, noise: Noise::new(seed), motion }
    }

    /// The most bytes that noise can add to a picture, so that every number below can be met as well:
    /// I_PCM all over, but for the lane, the first row of the bars (whose colours the rows below repeat at
    /// little cost) and the macroblocks that fine weight may need. `None` if nothing is left.
    pub(crate) fn noise_bytes(&self) -> Option<u64> {
        let macroblocks = self.columns * self.rows.checked_sub(self.lane_rows + 1)?;
        let pcm = macroblocks.checked_sub(MAX_GRAIN).filter(|&pcm| pcm > 0)?;
        Some(u64::from(pcm) * PCM_BYTES + PCM_BYTES - 1)
    }

    /// How many pixels the block can go.
    pub(crate) fn block_travel(&self) -> u32 {
        (self.columns * 16).saturating_sub(BLOCK_START + self.block_width())
    }

    /// Appends the picture to `out` as one NAL unit.
    pub(crate) fn code(&mut self, picture: &Picture, out: &mut Vec<u8>) {
        let mut bits = BitWriter::default();
        slice_header(&mut bits, picture.kind);
        let macroblocks = self.columns * self.rows;
        let first_pcm = macroblocks - picture.weight.pcm;
        let first_grain = first_pcm - picture.weight.grain;
        match picture.kind {
            Kind::Idr { .. } => {
                for address in 0..first_grain {
                    self.flat(&mut bits, address, picture.block);
                }
                for _ in first_grain..first_pcm {
                    self.grain(&mut bits, 0);
                }
                for _ in first_pcm..macroblocks {
                    self.pcm(&mut bits, 0);
                }
            }
            Kind::Predicted { previous_block, .. } => {
                let mut skipped = self.moved(&mut bits, picture.block, previous_block, first_grain);
                for _ in first_grain..first_pcm {
                    bits.unsigned_golomb(std::mem::take(&mut skipped)); // mb_skip_run
                    self.grain(&mut bits, FIRST_INTRA_IN_P);
                }
                for _ in first_pcm..macroblocks {
                    bits.unsigned_golomb(std::mem::take(&mut skipped)); // mb_skip_run
                    self.pcm(&mut bits, FIRST_INTRA_IN_P);
                }
                if skipped > 0 {
                    bits.unsigned_golomb(skipped); // mb_skip_run
                }
            }
        }
        bits.trailing_bits();
        append_escaped(&bits.finish(), out);
    }

    /// A macroblock of one colour: I_16x16, predicted from a neighbour, and the difference in its DC.
    fn flat(&self, bits: &mut BitWriter, address: u32, block: u32) {
        let (column, row) = (address % self.columns, address / self.columns);
        let colour = self.colour(column, row, block);
        let left = (column > 0).then(|| self.colour(column - 1, row, block));
        let above = (row > 0).then(|| self.colour(column, row - 1, block));
        // Intra_16x16 prediction modes 0 to 2 (table 8-4) and the chroma mode of the same direction (8-5).
        let (luma_mode, chroma_mode, prediction) = match (left, above) {
            (_, Some(above)) if above == colour => (0, 2, above),
            (Some(left), _) => (1, 1, left),
            (None, Some(above)) => (0, 2, above),
            (None, None) => (2, 0, GREY),
        };
        // Where all neighbours agree, chroma DC prediction says the same in one bit instead of three.
        let agreed = left.unwrap_or(prediction) == above.unwrap_or(prediction);
        let blue = (colour.blue - prediction.blue) / 2;
        let red = (colour.red - prediction.red) / 2;
        let chroma = u32::from(blue != 0 || red != 0);
        bits.unsigned_golomb(1 + luma_mode + 4 * chroma); // mb_type, table 7-11
        bits.unsigned_golomb(if agreed { 0 } else { chroma_mode }); // intra_chroma_pred_mode
        bits.signed_golomb(0); // mb_qp_delta
        write_dc(bits, Block::LumaDc, colour.luma - prediction.luma);
        if chroma != 0 {
            write_dc(bits, Block::ChromaDc, blue);
            write_dc(bits, Block::ChromaDc, red);
        }
    }

    /// A macroblock of noise, four by four pixels coarse. It costs the same whatever the noise: only signs
    /// differ. Sixteen levels of 8 keep the sums well within 16 bits (clause 8.5.10).
    fn grain(&mut self, bits: &mut BitWriter, first_intra: u32) {
        let signs = self.noise.next();
        let levels = std::array::from_fn(|index| if signs >> index & 1 == 0 { 8 } else { -8 });
        bits.unsigned_golomb(first_intra + 3); // mb_type: I_16x16, DC prediction
        bits.unsigned_golomb(0); // intra_chroma_pred_mode: DC
        bits.signed_golomb(0); // mb_qp_delta
        write_full_luma_dc(bits, &levels);
    }

    /// A macroblock of noise, pixel by pixel: I_PCM (clause 7.3.5). No sample is zero, so that emulation
    /// prevention adds nothing.
    fn pcm(&mut self, bits: &mut BitWriter, first_intra: u32) {
        let mut samples = [0; 384];
        for (index, eight) in samples.chunks_exact_mut(8).enumerate() {
            for (sample, noise) in eight.iter_mut().zip(self.noise.next().to_le_bytes()) {
                // Luma over its whole range, 16 to 235; chroma near grey.
                *sample =
                    if index < 32 { 16 + (u32::from(noise) * 220 / 256) as u8 } else { 112 + (noise >> 3) };
            }
        }
        bits.unsigned_golomb(first_intra + 25); // mb_type
        bits.align(); // pcm_alignment_zero_bit
        bits.bytes(&samples);
    }

    /// The macroblocks of a P picture before `end`: those that the block touches follow it, all others stay.
    /// Returns the skipped ones at the end, whose mb_skip_run is not written yet.
    fn moved(&mut self, bits: &mut BitWriter, block: u32, previous: u32, end: u32) -> u32 {
        let mut skipped = 0;
        self.motion.fill(0);
        for address in 0..end.min(self.columns * self.lane_rows) {
            let (column, row) = (address % self.columns, address / self.columns);
            let touched = [block, previous].iter().any(|&at| self.block_touches(column, at));
            let motion = if touched { 4 * (previous as i32 - block as i32) } else { 0 };
            self.motion[address as usize] = motion;
            let predicted = self.predicted_motion(column, row);
            if motion == self.skip_motion(column, row, predicted) {
                skipped += 1;
                continue;
            }
            bits.unsigned_golomb(std::mem::take(&mut skipped)); // mb_skip_run
            bits.unsigned_golomb(0); // mb_type: P_L0_16x16
            bits.signed_golomb(motion - predicted); // mvd_l0, horizontal
            bits.signed_golomb(0); // mvd_l0, vertical
            bits.unsigned_golomb(0); // coded_block_pattern 0, table 9-4 for inter
        }
        // Below the lane nothing moves; with a still left neighbour, or none, a skipped macroblock is still.
        skipped + end.saturating_sub(self.columns * self.lane_rows)
    }

    /// The motion of a neighbour, if that is in the picture.
    fn motion_at(&self, column: Option<u32>, row: Option<u32>) -> Option<i32> {
        let column = column.filter(|&column| column < self.columns)?;
        self.motion.get((row? * self.columns + column) as usize).copied()
    }

    /// Median prediction (clause 8.4.1.3): all neighbours before this macroblock use the one reference.
    fn predicted_motion(&self, column: u32, row: u32) -> i32 {
        let left = self.motion_at(column.checked_sub(1), Some(row));
        let above = self.motion_at(Some(column), row.checked_sub(1));
        let corner = self
            .motion_at(Some(column + 1), row.checked_sub(1))
            .or_else(|| self.motion_at(column.checked_sub(1), row.checked_sub(1)));
        match (left, above, corner) {
            (left, None, None) => left.unwrap_or(0),
            (None, Some(only), None) | (None, None, Some(only)) => only,
            _ => {
                let mut three = [left, above, corner].map(|motion| motion.unwrap_or(0));
                three.sort_unstable();
                three[1]
            }
        }
    }

    /// The motion of a skipped macroblock (clause 8.4.1.1).
    fn skip_motion(&self, column: u32, row: u32, predicted: i32) -> i32 {
        let left = self.motion_at(column.checked_sub(1), Some(row));
        let above = self.motion_at(Some(column), row.checked_sub(1));
        match (left, above) {
            (Some(left), Some(above)) if left != 0 && above != 0 => predicted,
            _ => 0,
        }
    }

    /// In pixels: twice the height.
    fn block_width(&self) -> u32 {
        32 * self.lane_rows
    }

    /// Whether the block, `at` pixels from its start, covers a part of this column of the lane.
    fn block_touches(&self, column: u32, at: u32) -> bool {
        let (from, to) = (BLOCK_START + at, BLOCK_START + at + self.block_width());
        from < (column + 1) * 16 && column * 16 < to
    }

    /// The colour of a macroblock in an IDR picture, where the block stands on the grid.
    fn colour(&self, column: u32, row: u32, block: u32) -> Colour {
        if row >= self.lane_rows {
            BARS[(column * BARS.len() as u32 / self.columns) as usize]
        } else if self.block_touches(column, block) {
            WHITE
        } else {
            LANE
        }
    }
}

/// A colour in Y′CbCr of ITU-R BT.709, in the narrow range. Chroma is even: see [`QUANTISER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Colour {
    luma: i32,
    blue: i32,
    red: i32,
}

const fn colour(luma: i32, blue: i32, red: i32) -> Colour {
    Colour { luma, blue, red }
}

/// What DC prediction gives where there is no neighbour (clause 8.3.3.3).
const GREY: Colour = colour(128, 128, 128);
const WHITE: Colour = colour(235, 128, 128);
const LANE: Colour = colour(40, 128, 128);

/// White, yellow, cyan, green, magenta, red, blue and black at 75 %.
const BARS: [Colour; 8] = [
    colour(180, 128, 128),
    colour(168, 44, 136),
    colour(146, 148, 44),
    colour(134, 64, 52),
    colour(63, 192, 204),
    colour(51, 108, 212),
    colour(28, 212, 120),
    colour(16, 128, 128),
];

/// Where the block starts, in pixels: not at the edge, whose pixels repeat beyond it (clause 8.4.2.2.1).
const BLOCK_START: u32 = 16;

/// In a P picture the intra types of table 7-11 follow the five of table 7-13.
const FIRST_INTRA_IN_P: u32 = 5;

/// NAL unit header and slice header (clause 7.3.3).
fn slice_header(bits: &mut BitWriter, kind: Kind) {
    let idr = matches!(kind, Kind::Idr { .. });
    bits.bits(if idr { 0x65 } else { 0x41 }, 8); // nal_ref_idc 3 or 2, type 5 or 1
    bits.unsigned_golomb(0); // first_mb_in_slice
    bits.unsigned_golomb(if idr { 7 } else { 5 }); // slice_type: all I, all P
    bits.unsigned_golomb(0); // pic_parameter_set_id
    match kind {
        Kind::Idr { idr_pic_id } => {
            bits.bits(0, FRAME_NUM_BITS);
            bits.unsigned_golomb(idr_pic_id);
            bits.flag(false); // no_output_of_prior_pics_flag
            bits.flag(false); // long_term_reference_flag
        }
        Kind::Predicted { index, .. } => {
            bits.bits(index % (1 << FRAME_NUM_BITS), FRAME_NUM_BITS);
            bits.flag(false); // num_ref_idx_active_override_flag
            bits.flag(false); // ref_pic_list_modification_flag_l0
            bits.flag(false); // adaptive_ref_pic_marking_mode_flag
        }
    }
    bits.signed_golomb(0); // slice_qp_delta
    bits.unsigned_golomb(1); // disable_deblocking_filter_idc: edges stay sharp, and decoding cheap
}
