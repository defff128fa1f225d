package understudy.oracle;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import sun.reflect.ReflectionFactory;

/** The few places where Kafka's classes do not let one in by the door. */
final class Reflection {

  private Reflection() {}

  static <T> T withoutConstructor(Class<T> type) {
    try {
      return type.cast(
          ReflectionFactory.getReflectionFactory()
              .newConstructorForSerialization(type, Object.class.getDeclaredConstructor())
              .newInstance());
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  static void set(Object owner, Class<?> type, String field, Object value) {
    try {
      Field found = type.getDeclaredField(field);
      found.setAccessible(true);
      found.set(owner, value);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  static Object get(Object owner, Class<?> type, String field) {
    try {
      Field found = type.getDeclaredField(field);
      found.setAccessible(true);
      return found.get(owner);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Calls a private method without parameters; what it throws comes out as it is. */
  static Object call(Object owner, Class<?> type, String method) {
    try {
      Method found = type.getDeclaredMethod(method);
      found.setAccessible(true);
      return found.invoke(owner);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw new IllegalStateException(e.getCause());
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }
}
