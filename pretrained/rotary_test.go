package pretrained_test

import "testing"

//lazo:norace
func TestRotary_numbers(t *testing.T) { numbers(t, "llama3") }
