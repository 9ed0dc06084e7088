package pretrained_test

import "testing"

//lazo:norace
func TestWhisper_numbers(t *testing.T) { numbers(t, "whisper") }
