// Package prometheus offers the numbers of trainings, checkpoints, devices and servers to Prometheus. It is a separate
// module because of its dependencies:
//
//	metrics := prometheus.New()
//	server, err := metrics.Listen("") // http://127.0.0.1:9464/metrics, /health and /debug/pprof/
//	defer server.Close()
//	result, err := training.Run(ctx, state, batches, metrics.Training("digits", loop.Every(loop.Time(5*time.Second))),
//		checkpoint.Resume("runs/1", checkpoint.Options{Saved: metrics.Saved("digits")}))
//
// A server of package serve:
//
//	handler, err := serve.NewHandler(map[string]*serve.Batcher{"digits": batcher}, serve.Options{Observe: metrics.Served})
//
// docs/monitoring.md lists all metrics. dashboard.json is a dashboard for Grafana.
package prometheus
