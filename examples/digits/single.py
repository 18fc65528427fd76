"""Train the digits in one task, without a strategy."""

import os
import time

import digits


def main():
    digits.configure_logging()
    options = digits.parse_options(__doc__)
    data = digits.load_digits(os.environ["DTF_INPUT_PATH"])
    model = digits.build_model()
    optimizer = digits.build_optimizer(model, options.learning_rate)
    batches = iter(digits.batches(data.train_images, data.train_labels, options.batch_size))
    train_step = digits.build_step(model, optimizer)
    record = digits.Record(model, optimizer, data)
    for step in range(record.resume() + 1, options.steps + 1):
        train_step(*next(batches))
        time.sleep(options.step_delay)
        if step % options.checkpoint_steps == 0 or step == options.steps:
            record.save(step)
    record.finish()


if __name__ == "__main__":
    main()
