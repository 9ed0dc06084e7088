package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMachines(t *testing.T) {
	machines, err := parseMachines(machinesText)
	require.NoError(t, err)
	var kinds []string
	for _, m := range machines {
		kinds = append(kinds, m.Kind)
		require.Contains(t, []string{"tpu", "cuda"}, m.Plugin, m.Kind)
		require.Positive(t, m.Memory, m.Kind)
		require.Positive(t, m.Bandwidth, m.Kind)
		require.Positive(t, m.Matrix["bf16"], m.Kind)
		for figure, source := range m.Sources {
			require.Regexp(t, `^(NVIDIA|Google Cloud documentation), ".+"`, source, "%s of %s", figure, m.Kind)
		}
	}
	require.Equal(t, []string{"v4", "v5e", "v5p", "v6e", "tpu7x", "a100", "h100", "h200", "b200"}, kinds)
	for _, wrong := range []string{"v9\tmemory\t1\n", "v9\tmemory\tmuch\tsomewhere\n", "v9\tspeed\t1\tsomewhere\n", "v9\tmemory\t1\ta\nv9\tmemory\t2\tb\n", "v9\tmemory\t-1\ta\n"} {
		_, err := parseMachines(wrong)
		require.Error(t, err, "%q", wrong)
	}
}

func TestParseTarget(t *testing.T) {
	for name, want := range map[string]struct {
		topology string
		hosts    int
	}{
		"v5e:4x4": {"v5e:4x4", 1}, "v5p:2x2x4": {"v5p:2x2x4", 1}, "h100:8": {"h100:1x1x8", 1}, "h100:4": {"h100:1x1x4", 1}, "h100:1": {"h100:1x1x1", 1},
		"h100:64": {"h100:1x8x8", 8}, "a100:1x2x4": {"a100:1x2x4", 2},
	} {
		target, err := ParseTarget(name)
		require.NoError(t, err, name)
		require.Equal(t, want.topology, target.Topology(), name)
		require.Equal(t, want.hosts, target.Hosts(), name)
	}
	for name, want := range map[string]string{
		"": "the kinds are v4, v5e", "h100": "the kinds are", "k80:8": "the kinds are", "h100:": `"" is not a number`, "h100:0": "not a number of devices", "h100:12": "not a whole number of hosts of 8",
		"h100:2x8": "SLICESxHOSTSxDEVICES", "v5e:16": `as "v5e:4x4"`, "v5e:2x2x2x2": "4 axes", "h100:9999999": "not a number of devices",
		"v5e:2x2x2": "two axes of at most 16", "v6e:32x8": "two axes of at most 16", "h200:8": "expected one of a100, h100",
	} {
		_, err := ParseTarget(name)
		require.ErrorContains(t, err, want, name)
	}
	for devices, want := range map[int]string{1: "v5e:1x1", 8: "v5e:2x4", 64: "v5e:8x8", 256: "v5e:16x16"} {
		target, err := ParseTarget("v5e:2x2")
		require.NoError(t, err)
		target, err = target.Sized(devices)
		require.NoError(t, err)
		require.Equal(t, want, target.Name)
	}
	target, err := ParseTarget("v5p:2x2x1")
	require.NoError(t, err)
	for devices, want := range map[int]string{4: "v5p:2x2x1", 8: "v5p:2x2x2", 64: "v5p:4x4x4"} {
		sized, err := target.Sized(devices)
		require.NoError(t, err)
		require.Equal(t, want, sized.Name)
	}
}
