//! Sequence and picture parameter set, and the decoder configuration record that carries them in FLV and MP4.

use crate::FrameRate;
use crate::append_decoder_configuration;
use crate::bits::BitWriter;
use crate::h264::picture::{FRAME_NUM_BITS, QUANTISER};
use crate::nal::append_escaped;

/// What the parameter sets say of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequence {
    /// In pixels; even, because chroma has half of them.
    pub(crate) width: u16,
    pub(crate) height: u16,
    pub(crate) frame_rate: FrameRate,
    pub(crate) level_idc: u8,
}

/// The sequence parameter set as a NAL unit (clause 7.3.2.1.1, VUI: annex E.1.1).
pub(crate) fn sequence_parameter_set(sequence: &Sequence) -> Vec<u8> {
    let Sequence { width, height, frame_rate, level_idc } = *sequence;
    let (columns, rows) = (u32::from(width).div_ceil(16), u32::from(height).div_ceil(16));
    let mut bits = BitWriter::default();
    bits.bits(0x67, 8); // nal_ref_idc 3, type 7
    bits.bits(PROFILE_IDC.into(), 8);
    bits.bits(CONSTRAINT_FLAGS.into(), 8);
    bits.bits(level_idc.into(), 8);
    bits.unsigned_golomb(0); // seq_parameter_set_id
    bits.unsigned_golomb(FRAME_NUM_BITS - 4); // log2_max_frame_num_minus4
    bits.unsigned_golomb(2); // pic_order_cnt_type: pictures are shown in the order of decoding
    bits.unsigned_golomb(1); // max_num_ref_frames
    bits.flag(false); // gaps_in_frame_num_value_allowed_flag
    bits.unsigned_golomb(columns - 1); // pic_width_in_mbs_minus1
    bits.unsigned_golomb(rows - 1); // pic_height_in_map_units_minus1
    bits.flag(true); // frame_mbs_only_flag
    bits.flag(true); // direct_8x8_inference_flag
    let crop_right = (columns * 16 - u32::from(width)) / 2;
    let crop_bottom = (rows * 16 - u32::from(height)) / 2;
    bits.flag(crop_right + crop_bottom > 0); // frame_cropping_flag
    if crop_right + crop_bottom > 0 {
        for offset in [0, crop_right, 0, crop_bottom] {
            bits.unsigned_golomb(offset);
        }
    }
    bits.flag(true); // vui_parameters_present_flag
    bits.flag(true); // aspect_ratio_info_present_flag
    bits.bits(1, 8); // aspect_ratio_idc: square pixels
    bits.flag(false); // overscan_info_present_flag
    bits.flag(true); // video_signal_type_present_flag
    bits.bits(5, 3); // video_format: unspecified
    bits.flag(false); // video_full_range_flag
    bits.flag(true); // colour_description_present_flag
    for _ in ["colour_primaries", "transfer_characteristics", "matrix_coefficients"] {
        bits.bits(1, 8); // ITU-R BT.709
    }
    bits.flag(false); // chroma_loc_info_present_flag
    bits.flag(true); // timing_info_present_flag
    bits.bits(frame_rate.denominator(), 32); // num_units_in_tick
    bits.bits(2 * frame_rate.numerator(), 32); // time_scale: a frame is two ticks (equation E-76)
    bits.flag(true); // fixed_frame_rate_flag
    bits.flag(false); // nal_hrd_parameters_present_flag
    bits.flag(false); // vcl_hrd_parameters_present_flag
    bits.flag(false); // pic_struct_present_flag
    bits.flag(true); // bitstream_restriction_flag
    bits.flag(true); // motion_vectors_over_pic_boundaries_flag
    bits.unsigned_golomb(0); // max_bytes_per_pic_denom: no limit
    bits.unsigned_golomb(0); // max_bits_per_mb_denom: no limit
    bits.unsigned_golomb(13); // log2_max_mv_length_horizontal
    bits.unsigned_golomb(13); // log2_max_mv_length_vertical
    bits.unsigned_golomb(0); // max_num_reorder_frames: a decoder may show each picture at once
    bits.unsigned_golomb(1); // max_dec_frame_buffering
    bits.trailing_bits();
    nal_unit(bits)
}

/// The picture parameter set as a NAL unit (clause 7.3.2.2).
pub(crate) fn picture_parameter_set() -> Vec<u8> {
    let mut bits = BitWriter::default();
    bits.bits(0x68, 8); // nal_ref_idc 3, type 8
    bits.unsigned_golomb(0); // pic_parameter_set_id
    bits.unsigned_golomb(0); // seq_parameter_set_id
    bits.flag(false); // entropy_coding_mode_flag: CAVLC
    bits.flag(false); // bottom_field_pic_order_in_frame_present_flag
    bits.unsigned_golomb(0); // num_slice_groups_minus1
    bits.unsigned_golomb(0); // num_ref_idx_l0_default_active_minus1
    bits.unsigned_golomb(0); // num_ref_idx_l1_default_active_minus1
    bits.flag(false); // weighted_pred_flag
    bits.bits(0, 2); // weighted_bipred_idc
    bits.signed_golomb(QUANTISER - 26); // pic_init_qp_minus26
    bits.signed_golomb(0); // pic_init_qs_minus26
    bits.signed_golomb(0); // chroma_qp_index_offset
    bits.flag(true); // deblocking_filter_control_present_flag
    bits.flag(false); // constrained_intra_pred_flag
    bits.flag(false); // redundant_pic_cnt_present_flag
    bits.trailing_bits();
    nal_unit(bits)
}

/// AVCDecoderConfigurationRecord (ISO/IEC 14496-15, clause 5.3.3.1.2) with lengths of four bytes.
pub(crate) fn decoder_configuration(sequence: &Sequence) -> Vec<u8> {
    let (sps, pps) = (sequence_parameter_set(sequence), picture_parameter_set());
    let mut record = Vec::new();
    append_decoder_configuration(&[&sps], &[&pps], &mut record);
    record
}

/// Baseline.
const PROFILE_IDC: u8 = 66;

/// constraint_set0, 1 and 2: baseline, main and extended decoders can all play it; the first two together
/// are constrained baseline, which WebRTC calls 42e0.
const CONSTRAINT_FLAGS: u8 = 0xe0;

fn nal_unit(bits: BitWriter) -> Vec<u8> {
    let mut unit = Vec::new();
    append_escaped(&bits.finish(), &mut unit);
    unit
}
