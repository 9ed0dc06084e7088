package pretrained_test

import "testing"

//lazo:norace
func TestBERT_numbers(t *testing.T) { numbers(t, "bert", "bert-tanh") }
