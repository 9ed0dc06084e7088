// Package safetensors reads and writes tensors in the safetensors format of Hugging Face. A file contains only named
// arrays and strings, no code:
//
//	8 bytes   length n of the header, little endian
//	n bytes   the header, JSON, padded by spaces to a multiple of 8:
//	          {"__metadata__":{"key":"text"},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
//	the rest  the elements, row-major and little endian, tensor by tensor without gaps
//
// [NewWriter] writes a file, [NewReader] reads single tensors or their rows, [ReadFile] a whole file. All compute
// CRC-32C checksums. [Bytes] and [Values] convert numbers.
//
// Files are untrusted. Unlike the Python package 0.8, the reader refuses duplicate names and unknown fields: a file has
// one meaning. Names are arbitrary strings, never paths.
//
// Source: https://github.com/huggingface/safetensors (format description and version 0.8.0).
package safetensors
