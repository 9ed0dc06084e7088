//go:build nightly

package safetensors_test

func init() { bombSize = 99_990_000 } // the limit of a header, nearly
