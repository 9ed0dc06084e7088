package pretrained_test

import "testing"

//lazo:norace
func TestDistilBERT_numbers(t *testing.T) { numbers(t, "distilbert") }
