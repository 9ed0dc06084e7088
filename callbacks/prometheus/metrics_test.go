package prometheus

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/xla"
)

// names returns the described metrics of lazo.
func names(m *Metrics) (all []string) {
	described := make(chan *client.Desc)
	go func() { m.Describe(described); close(described) }()
	for d := range described {
		if found := regexp.MustCompile(`fqName: "(lazo_\w+)"`).FindStringSubmatch(d.String()); found != nil {
			all = append(all, found[1])
		}
	}
	slices.Sort(all)
	return all
}

// values returns lines of the metrics' text without those of Go and the process.
func values(t *testing.T, m *Metrics, prefix string) string {
	t.Helper()
	families, err := m.Gather()
	require.NoError(t, err)
	var own []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), prefix) {
			own = append(own, f.GetName())
		}
	}
	if own == nil {
		return ""
	}
	text, err := testutil.CollectAndFormat(m.Registry, expfmt.TypeTextPlain, own...)
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

var named = regexp.MustCompile(`\blazo_\w+`)

// expressions returns the queries of the dashboard.
func expressions(t *testing.T) (all []string) {
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	for _, p := range dashboard.Panels {
		require.NotEmpty(t, p.Targets)
		for _, target := range p.Targets {
			require.NotEmpty(t, target.Expr)
			all = append(all, target.Expr)
		}
	}
	return all
}

// S52: docs/monitoring.md lists all metrics, and the dashboard shows all, and no others.
func TestMetrics_areDocumented(t *testing.T) {
	have := names(New())
	require.Greater(t, len(have), 15)
	text, err := os.ReadFile("../../docs/monitoring.md")
	require.NoError(t, err)
	var documented []string
	for _, row := range regexp.MustCompile(`(?m)^\| (lazo_\w+) \|`).FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1])
	}
	slices.Sort(documented)
	require.Equal(t, have, documented)
	require.Equal(t, have, shown(expressions(t)))
	for _, name := range named.FindAllString(string(text), -1) {
		require.Contains(t, have, name)
	}
	require.Equal(t, []string{"lazo_other", "lazo_serving_queue_seconds"}, shown([]string{"rate(lazo_serving_queue_seconds_sum[1m])", "lazo_other"}), "the look finds them")
}

func shown(expressions []string) []string {
	found := map[string]bool{}
	for _, e := range expressions {
		for _, name := range named.FindAllString(e, -1) {
			found[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

type card struct{ inUse int64 }

func (card) NumDevices() int { return 2 }

func (c card) DeviceMemory(n compute.DeviceNum) (xla.DeviceMemory, error) {
	if n > 0 {
		return xla.DeviceMemory{}, xla.ErrUnimplemented
	}
	return xla.DeviceMemory{InUse: c.inUse, PeakInUse: 7, Limit: -1}, nil
}

func TestMetrics_deviceMemory(t *testing.T) {
	m := New()
	require.Empty(t, values(t, m, "lazo_device"))
	m.devices.of = append(m.devices.of, card{5})
	require.Equal(t, "lazo_device_memory_bytes{device=\"0\",kind=\"in_use\"} 5\nlazo_device_memory_bytes{device=\"0\",kind=\"peak\"} 7\n",
		values(t, m, "lazo_device"), "neither unknown values nor devices without statistics")
}
