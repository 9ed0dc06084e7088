"""Fine-tunes a folder's encoder on a CSV file of debian_texts.py by transformers' Trainer, with the settings of examples/finetune:
debian_trainer.py FOLDER FILE SEED. With the folder "tfidf": logistic regression by scikit-learn."""
import csv
import sys

import numpy as np

folder, file, seed = sys.argv[1:]
with open(file, newline="") as f:
    rows = list(csv.reader(f))[1:]
names = sorted({row[1] for row in rows})
parts = {part: [(row[0], names.index(row[1])) for row in rows if row[2] == part] for part in ("training", "test")}

if folder == "tfidf":
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000, random_state=int(seed))).fit(*zip(*parts["training"]))
    print(f"test accuracy: {model.score(*zip(*parts['test'])):.3f}")
    sys.exit()

from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, Trainer, TrainingArguments  # noqa: E402

tokenizer = AutoTokenizer.from_pretrained(folder)
sets = {part: [{**tokenizer(text, truncation=True, max_length=64), "label": label} for text, label in examples] for part, examples in parts.items()}
arguments = TrainingArguments("/tmp/trainer", num_train_epochs=4, per_device_train_batch_size=32, learning_rate=1e-4, warmup_steps=0.1, max_grad_norm=1,
                              seed=int(seed), save_strategy="no", report_to="none", disable_tqdm=True)
trainer = Trainer(AutoModelForSequenceClassification.from_pretrained(folder, num_labels=len(names)), arguments, DataCollatorWithPadding(tokenizer),
                  train_dataset=sets["training"], eval_dataset=sets["test"],
                  compute_metrics=lambda p: {"accuracy": np.mean(p.predictions.argmax(-1) == p.label_ids)})
trainer.train()
print(f"test accuracy: {trainer.evaluate()['eval_accuracy']:.3f}")
