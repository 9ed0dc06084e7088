"""The same task in Keras, as its users write it: KERAS_BACKEND=jax python peer.py penguins.csv [seed]. It needs keras,
jax, pandas and scikit-learn. Keras's StringLookup and FeatureSpace need TensorFlow, so pandas makes the columns of
classes."""
import sys

import keras
import pandas as pd
from sklearn.model_selection import train_test_split

seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
keras.utils.set_random_seed(seed)
table = pd.read_csv(sys.argv[1])
train, test = train_test_split(table, train_size=0.75, stratify=table["species"], random_state=seed)
species = sorted(train["species"].unique())
numbers = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "year"]
fill = {**train[numbers].median(), **train[["island", "sex"]].mode().iloc[0]}
columns = pd.get_dummies(train.fillna(fill)[["island", "sex"]]).columns
mean, std = train.fillna(fill)[numbers].mean(), train.fillna(fill)[numbers].std(ddof=0)


def inputs(rows):
    rows = rows.fillna(fill)
    hot = pd.get_dummies(rows[["island", "sex"]]).reindex(columns=columns, fill_value=False)
    return pd.concat([(rows[numbers] - mean) / std, hot], axis=1).to_numpy("float32")


model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(3)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
y = {name: rows["species"].map(species.index).to_numpy() for name, rows in (("train", train), ("test", test))}
model.fit(inputs(train), y["train"], epochs=20, validation_data=(inputs(test), y["test"]), verbose=2)
print(f"test accuracy: {model.evaluate(inputs(test), y['test'], verbose=0, return_dict=True)['accuracy']:.3f}")
model.save("penguins.keras")
bird = pd.DataFrame([{"island": "Dream", "sex": "female", "year": 2009, "body_mass_g": None,
                      "bill_length_mm": 46.5, "bill_depth_mm": 17.9, "flipper_length_mm": 192}])
print("the bird is:", species[model.predict(inputs(bird), verbose=0)[0].argmax()])
