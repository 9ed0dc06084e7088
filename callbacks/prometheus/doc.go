// Package prometheus offers the numbers of trainings, checkpoints, devices and servers to Prometheus. It is a separate
// module because of its dependencies.
//
// docs/monitoring.md lists all metrics. dashboard.json is a dashboard for Grafana.
package prometheus
