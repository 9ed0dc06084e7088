package pretrained_test

import "testing"

//lazo:norace
func TestGPT2_numbers(t *testing.T) { numbers(t, "gpt2") }
