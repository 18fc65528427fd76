// Keys that were made before Java starts, for programs that make an RSA key at each start: see throwaway_keys.py.

package tf_yarn_ops.minicluster;

import java.security.GeneralSecurityException;
import java.security.InvalidAlgorithmParameterException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyPairGeneratorSpi;
import java.security.Provider;
import java.security.ProviderException;
import java.security.SecureRandom;
import java.security.Security;
import java.security.interfaces.RSAPrivateCrtKey;
import java.security.spec.AlgorithmParameterSpec;
import java.security.spec.PKCS8EncodedKeySpec;
import java.security.spec.RSAPublicKeySpec;
import java.util.Base64;

/** A provider for RSA keys: of the sizes in Java's security properties it has keys, all others Java makes. */
public final class ThrowawayKeys extends Provider {
  public ThrowawayKeys() {
    super("ThrowawayKeys", 1.0, "RSA keys that were made before Java started");
    put("KeyPairGenerator.RSA", Generator.class.getName());
  }

  public static final class Generator extends KeyPairGeneratorSpi {
    private static final String OTHERS = "SunRsaSign";
    private int bits; // 0: Java's own size
    private KeyPairGenerator other;

    @Override
    public void initialize(int size, SecureRandom random) {
      bits = size;
      other = null;
      if (kept() == null) {
        other = others();
        other.initialize(size, random);
      }
    }

    @Override
    public void initialize(AlgorithmParameterSpec parameters, SecureRandom random) throws InvalidAlgorithmParameterException {
      other = others();
      other.initialize(parameters, random);
    }

    @Override
    public KeyPair generateKeyPair() {
      if (other == null && kept() == null) {
        other = others();
      }
      return other == null ? decode(kept()) : other.generateKeyPair();
    }

    private String kept() {
      return Security.getProperty("tf_yarn_ops.rsa." + bits);
    }

    private static KeyPair decode(String text) {
      try {
        KeyFactory factory = KeyFactory.getInstance("RSA", OTHERS);
        RSAPrivateCrtKey key =
            (RSAPrivateCrtKey) factory.generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text)));
        return new KeyPair(
            factory.generatePublic(new RSAPublicKeySpec(key.getModulus(), key.getPublicExponent())), key);
      } catch (GeneralSecurityException error) {
        throw new ProviderException(error);
      }
    }

    private static KeyPairGenerator others() {
      try {
        return KeyPairGenerator.getInstance("RSA", OTHERS);
      } catch (GeneralSecurityException error) {
        throw new ProviderException(error);
      }
    }
  }
}
