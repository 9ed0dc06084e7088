// Package safetensors reads and writes tensors in the safetensors format of Hugging Face, which PyTorch, JAX, Keras and
// others read and write too. A file holds nothing but named arrays and a few strings: no code, no objects.
//
// A file is, in this order:
//
//	8 bytes   length n of the header, little endian
//	n bytes   the header, JSON, padded by spaces to a multiple of 8:
//	          {"__metadata__":{"key":"text"},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
//	the rest  the elements, row-major and little endian, tensor by tensor without gaps
//
// [NewWriter] writes the header and then takes the bytes of the tensors one after the other, from memory or from a
// function, so that a model is never in memory twice. [NewReader] checks the whole header before it gives out anything,
// and then reads single tensors, or rows of one; [ReadFile] reads all of a file. Both give the CRC-32C of what passed
// through them, in the same pass: the format itself has no checksums. That of a file's elements can go into its
// metadata, see [ChecksumKey]. [Bytes] and [Values] go between slices of numbers and bytes, mostly without a copy.
//
// Nothing in a file is trusted. A header is refused if it is not exactly what the format says, so that a file has one
// meaning only: the Python package 0.8 takes the last of two tensors with one name, and passes over fields that it does
// not know; we refuse both, because a second reader may choose otherwise. Names are any strings, never paths.
//
// Source: https://github.com/huggingface/safetensors (format description and version 0.8.0).
package safetensors
