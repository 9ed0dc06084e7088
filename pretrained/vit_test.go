package pretrained_test

import "testing"

//lazo:norace
func TestViT_numbers(t *testing.T) { numbers(t, "vit") }
