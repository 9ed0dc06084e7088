// Package mlflow records runs with an MLflow tracking server, by its REST API. It is a separate module:
//
//	var id string
//	history, err := model.Fit(ctx, set, flaxlike.Fit{Epochs: 20, Callbacks: []loop.Option{
//		mlflow.Record(mlflow.Run{URL: "http://127.0.0.1:5000", Experiment: "digits", ID: &id, Model: mlflow.SaveModel(model)},
//			loop.Every(loop.Epochs(1))),
//		checkpoint.Resume("runs/1", checkpoint.Options{Also: map[string]any{"mlflow": &id}}),
//	}})
package mlflow
