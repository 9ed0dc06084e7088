package pretrained_test

import "testing"

//lazo:norace
func TestRoBERTa_numbers(t *testing.T) { numbers(t, "roberta", "xlm-roberta") }
