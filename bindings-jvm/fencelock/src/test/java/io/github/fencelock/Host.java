package io.github.fencelock;

import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.WeakReference;

/** A program that has a {@link Guest} as the first to need the library, and says so when nothing is left of it. */
public final class Host {
    private Host() {}

    private static final class Loader extends ClassLoader {
        Loader() {
            super(Host.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith(Guest.class.getName())) {
                return super.loadClass(name, resolve);
            }
            try (InputStream program = getResourceAsStream(name.replace('.', '/') + ".class")) {
                byte[] bytes = program.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException error) {
                throw new ClassNotFoundException(name, error);
            }
        }
    }

    private static WeakReference<ClassLoader> comesAndGoes() throws ReflectiveOperationException {
        Loader loader = new Loader();
        Thread.currentThread().setContextClassLoader(loader);
        Runnable guest = (Runnable) loader.loadClass(Guest.class.getName()).getConstructor().newInstance();
        guest.run();
        Thread.currentThread().setContextClassLoader(null);
        return new WeakReference<>(loader);
    }

    /** Does so. */
    public static void main(String[] words) throws Exception {
        WeakReference<ClassLoader> guest = comesAndGoes();
        Wait.until("the guest's class loader is gone", () -> {
            System.gc();
            return guest.get() == null;
        });
        System.out.println("gone");
    }
}
