package cost

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const tables = `HloModule m

FileNames
1 "./a/b.go"
2 "-"

FunctionNames
1 "main"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7}
2 {file_name_id=2 function_name_id=1 line=9 end_line=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

ENTRY %main (x: f32[]) -> f32[] {
  ROOT %x = f32[] parameter(0)
}
`

func TestPlaces(t *testing.T) {
	m, err := read(tables)
	require.NoError(t, err)
	for metadata, want := range map[string][2]string{
		"":                                 {"", ""},
		`op_name="f" stack_frame_id=1`:     {"a/b.go:7", "f"},
		`op_name="f" stack_frame_id=2`:     {"program:9", "f"},
		`op_name="f" stack_frame_id=3`:     {"", "f"},
		`source_file="c.go" source_line=3`: {"c.go:3", ""}, // of older XLA
		`source_file="c.go"`:               {"", ""},
		`op_name="program:12/add"`:         {"program:12", ""},
		`op_name="x" source_line=9999999999999999999999`: {"", "x"},
	} {
		at, name := m.places.of(&instruction{attributes: map[string]string{"metadata": metadata}})
		if at.line > 1<<40 { // the number's largest value
			at.line = 0
		}
		require.Equal(t, want, [2]string{at.String(), name}, metadata)
	}
}

func TestPlaces_wrong(t *testing.T) {
	for _, text := range []string{"FileNames\n1 b.go\n", "FileLocations\n1 {line=7}\n", "StackFrames\nx\n"} {
		_, err := read("HloModule m\n\n" + text)
		require.ErrorContains(t, err, "expected a row of ")
	}
}
