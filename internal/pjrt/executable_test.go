package pjrt

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCompileErrors(t *testing.T) {
	c := openCPU(t, 1)
	rows := []struct {
		name, program string
		options       CompileOptions
		text          string
	}{
		{"syntax", "module { nonsense }", CompileOptions{}, "pjrt: compile: PJRT_Client_Compile: UNKNOWN: "},
		{"empty", "", CompileOptions{}, "the program is empty"},
		{"types", strings.Replace(tinyProgram, "%x, %one : tensor<f32>", "%x, %one : tensor<i32>", 1), CompileOptions{}, "PJRT_Client_Compile"},
		{"debug option", tinyProgram, CompileOptions{Debug: map[string]any{"no_such_option": true}}, "no_such_option"},
		{"type of a debug option", tinyProgram, CompileOptions{Debug: map[string]any{"x": []int{1}}}, "type []int"},
		{"devices", tinyProgram, CompileOptions{Devices: []int{0, 1}}, "got 2 devices for 1 replicas of 1 partitions"},
		{"no such device", tinyProgram, CompileOptions{Devices: []int{7}}, "7"},
		{"negative", tinyProgram, CompileOptions{Replicas: -1}, "-1 replicas"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := c.Compile([]byte(row.program), row.options)
			require.Error(t, err)
			t.Log(err)
			assert.Contains(t, err.Error(), row.text)
			assert.True(t, strings.HasPrefix(err.Error(), "pjrt: compile: "))
		})
	}
	for name, data := range map[string][]byte{"no executable": []byte("nonsense"), "nothing": nil} {
		_, err := c.Load(data)
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), "PJRT_Executable_DeserializeAndLoad")
	}
}
