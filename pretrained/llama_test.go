package pretrained_test

import "testing"

//lazo:norace
func TestLlama_numbers(t *testing.T) { numbers(t, "llama", "mistral", "qwen2", "qwen3") }
