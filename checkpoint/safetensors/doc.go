// Package safetensors reads and writes tensors in the safetensors format of Hugging Face. A file contains only named
// arrays and strings, no code. It consists of, in this order:
//
//	8 bytes   length n of the header, little endian
//	n bytes   the header, JSON, padded by spaces to a multiple of 8:
//	          {"__metadata__":{"key":"text"},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
//	the rest  the elements, row-major and little endian, tensor by tensor without gaps
//
// [NewWriter] writes a file, [NewReader] reads single tensors or their rows, [ReadFile] a whole file. All compute
// CRC-32C checksums. [Bytes] and [Values] convert numbers.
//
// Files are untrusted. So that a file has only one meaning, the reader refuses, unlike the Python package 0.8,
// duplicate names and unknown fields. Names are arbitrary strings, never paths.
//
// Source: https://github.com/huggingface/safetensors (format description and version 0.8.0).
package safetensors
