package azkaban.spi;

/** Azkaban's flow loaders throw it; the published artefacts leave out the module that has it. */
public class AzkabanException extends RuntimeException {
  public AzkabanException(String message, Throwable cause) { super(message, cause); }
}
